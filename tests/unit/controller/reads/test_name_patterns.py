"""Patterns of topic names: what they stand for, and how many of them are taken."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.reads.name_patterns import PATTERNS_CHARS_MAX, InvalidPattern, NamePatterns

NAMES = ["a", "a-b", "ab", "abab", "b", "orders", "orders-eu", "orders-us", "payments"]


def chosen(text: str, names: list[str]) -> list[str]:
    places = NamePatterns.parse(text).select(names)
    return names if places is None else [names[place] for place in places]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", NAMES),
        ("*", NAMES),
        ("orders", ["orders"]),
        ("order", []),
        ("orders*", ["orders", "orders-eu", "orders-us"]),
        ("*-us", ["orders-us"]),
        ("a*b", ["a-b", "ab", "abab"]),
        ("ab*b", ["abab"]),
        ("payments,a,a", ["a", "payments"]),
        ("o*,*us", ["orders", "orders-eu", "orders-us"]),
    ],
)
def test_pattern_stands_for_names(text: str, expected: list[str]) -> None:
    assert chosen(text, NAMES) == expected


@given(
    pattern=st.text("ab*", min_size=1, max_size=6).filter(lambda text: text.count("*") <= 4),
    names=st.lists(st.text("ab", min_size=1, max_size=6), unique=True).map(sorted),
)
def test_star_stands_for_what_a_regular_expression_says(pattern: str, names: list[str]) -> None:
    expression = re.compile(pattern.replace("*", ".*"))
    assert chosen(pattern, names) == [name for name in names if expression.fullmatch(name)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (",", "1 to 249 characters"),
        ("a,", "1 to 249 characters"),
        ("a" * 250, "1 to 249 characters"),
        ("a*b*c*d*e*", "more than 4 stars"),
        (",".join(f"{number}*" for number in range(9)), "more than 8 patterns"),
        ("a" * (PATTERNS_CHARS_MAX + 1), "is the most"),
    ],
)
def test_pattern_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidPattern, match=says):
        NamePatterns.parse(text)
