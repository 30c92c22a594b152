"""Mapping rules: limits and refusals that Kafka's vectors do not hold."""

from __future__ import annotations

import pytest

from quorate.controller.principals.java_patterns import PATTERN_CHARS_MAX, BadJavaPattern, java_pattern
from quorate.controller.principals.java_replacements import BadReplacement, NoSuchGroup, replace_all
from quorate.controller.principals.mapping_rules import (
    RULES_CHARS_MAX,
    BadMappingRule,
    NoMatchingRule,
    PrincipalMapping,
)


def test_first_rule_that_matches_all_of_the_name_makes_the_principal() -> None:
    mapping = PrincipalMapping("RULE:^CN=(.*?),OU=ops.*$/$1/L, RULE:^CN=([^,]+),.*$/app-$1/, DEFAULT")

    assert mapping.name_of("CN=Ana,OU=ops,O=x") == "ana"
    assert mapping.name_of("CN=Shop,OU=apps") == "app-Shop"
    assert mapping.name_of("O=other") == "O=other"


def test_name_that_no_rule_is_for_is_named() -> None:
    with pytest.raises(NoMatchingRule, match="none of the 1 principal mapping rules is for 'O=x'"):
        PrincipalMapping("RULE:^CN=.*$/a/").name_of("O=x")


@pytest.mark.parametrize("text", ["RULE:a/b", "RULE:a/b/x", "default", "RULE:a\\", "RULE:\\\n/b/", "x" * 100])
def test_text_that_is_no_rule_is_refused_and_said(text: str) -> None:
    with pytest.raises(BadMappingRule, match="write RULE:pattern/replacement/"):
        PrincipalMapping(text)


def test_rules_beyond_their_length_are_refused() -> None:
    with pytest.raises(BadMappingRule, match="at most 20000"):
        PrincipalMapping("," * (RULES_CHARS_MAX + 1))
    with pytest.raises(BadJavaPattern, match="longer than 2000"):
        PrincipalMapping(f"RULE:{'a' * (PATTERN_CHARS_MAX + 1)}/x/")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\bCN", "word boundary"),
        (r"CN=\p{Alpha}+", r"class \\p"),
        ("[a-z&&[^b]]", "intersection"),
        ("[a[b]]", "class in a class"),
        ("(?m)^a", "flag m"),
        ("(?x)a", "flag x"),
        (r"(a)\2", "back reference"),
        ("^*a", "boundary cannot be repeated|repetition of a boundary"),
        ("(a*)*", "group that may be empty"),
        ("(?<=a|bc)d", "look-behind"),
        (r"\0101", "octal"),
        ("(", "not closed"),
        (")", "not opened"),
        ("[", "not closed"),
        ("a{", "write {"),
        ("a{9999}", "more than 1000 repetitions"),
        ("*", "repeats nothing"),
        ("\\", "breaks off"),
        (r"\y", "means nothing"),
        (r"\x{110000}", "character number"),
        ("(?<1a>b)", "letters and digits"),
        ("(" * 60, "groups in each other"),
        ("[b-a]", "ends before it begins"),
    ],
)
def test_pattern_that_cannot_be_translated_is_refused_by_name(pattern: str, reason: str) -> None:
    with pytest.raises(BadJavaPattern, match=reason):
        java_pattern(pattern)


def test_flags_hold_for_the_rest_of_their_group() -> None:
    assert java_pattern("(a(?i)b|c)d").fullmatch("aBd")
    assert java_pattern("(a(?i)b|c)d").fullmatch("Cd")
    assert not java_pattern("(a(?i)b|c)d").fullmatch("aBD")
    assert not java_pattern("(?i:é)").fullmatch("É")


def test_replacement_that_is_wrong_is_found_when_it_is_used() -> None:
    pattern = java_pattern("(?<who>a)(b)?")
    assert replace_all(pattern, "a", r"${who}$2\$1$0") == "a$1a"
    with pytest.raises(NoSuchGroup, match="no group 3: the pattern has 2"):
        replace_all(pattern, "a", "$3")
    for wrong in ("$", "$x", "${", "${who", "${none}", "\\"):
        with pytest.raises(BadReplacement):
            replace_all(pattern, "a", wrong)
