"""Whose state is wrong."""

from __future__ import annotations

import pytest

from quorate.controller.background.digest_verdict import DigestVerdict, judge_digests


@pytest.mark.parametrize(
    ("digests", "count", "agreeing", "wrong", "is_undecided"),
    [
        ({1: "a", 2: "a", 3: "a"}, 3, {1, 2, 3}, set(), False),
        ({1: "a", 2: "a"}, 3, {1, 2}, set(), False),
        ({1: "a", 2: "b", 3: "a"}, 3, {1, 3}, {2}, False),
        ({1: "a", 2: "b"}, 3, set(), set(), True),
        ({1: "a", 2: "b", 3: "c"}, 3, set(), set(), True),
        ({1: "a"}, 3, set(), set(), False),
        ({1: "a"}, 1, {1}, set(), False),
        ({1: "a", 2: "b"}, 2, set(), set(), True),
        # Two that agree among five are no majority of all, even where only three answered.
        ({1: "a", 2: "a", 3: "b"}, 5, set(), set(), True),
        ({1: "a", 2: "a", 3: "b", 4: "a", 5: "c"}, 5, {1, 2, 4}, {3, 5}, False),
    ],
)
def test_digests_of_a_majority_convict_the_others(
    digests: dict[int, str], count: int, agreeing: set[int], wrong: set[int], is_undecided: bool
) -> None:
    assert judge_digests(digests, count) == DigestVerdict(frozenset(agreeing), frozenset(wrong), is_undecided)
