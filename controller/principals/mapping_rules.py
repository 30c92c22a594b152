"""Rules that make a principal's name of a distinguished name: Kafka's ``ssl.principal.mapping.rules``.

``RULE:pattern/replacement/`` with ``L`` or ``U`` behind for lower or upper case, or ``DEFAULT`` for the name as it is;
separated by commas. The first rule wins whose pattern matches the whole name. What comes out is then Java's
``replaceAll`` of that pattern, which replaces once more behind the end where the pattern matches nothing, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from quorate.controller.principals.java_patterns import java_pattern
from quorate.controller.principals.java_replacements import BadReplacement, replace_all
from quorate.metadata_log.errors import QuorateError

#: Characters of all rules together.
RULES_CHARS_MAX: Final = 20_000
#: The rules where none are set.
DEFAULT_RULES: Final = "DEFAULT"

_RULE: Final = "RULE:"
#: Java's white space between rules, and what its ``trim`` takes off around all of them.
_SPACES: Final = " \t\n\v\f\r"
_BLANKS: Final = "".join(map(chr, range(0x21)))
#: What a dot of Java's does not match: no rule can hold it behind a backslash.
_LINE_ENDS: Final = "\n\r\x85\u2028\u2029"
_DIGITS: Final = "0123456789"
#: Numbers of groups are integers of Java.
_GROUP_DIGITS_MAX: Final = 9


class BadMappingRule(QuorateError, ValueError):
    """A text that is no rule. Says which, and what is wrong with it."""


class NoMatchingRule(QuorateError):
    """A distinguished name that no rule is for: its client has no principal."""


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One ``RULE``."""

    pattern: re.Pattern[str]
    replacement: str
    #: ``L``, ``U`` or nothing.
    case: str

    def applied(self, name: str) -> str | None:
        """The principal's name, None if the rule is not for this distinguished name.

        Raises:
            BadReplacement: the rule is, and its replacement is wrong.
        """
        if self.pattern.fullmatch(name) is None:
            return None
        made = replace_all(self.pattern, name, _with_literal_references(self.replacement, self.pattern.groups))
        if self.case == "L":
            return made.lower()
        return made.upper() if self.case == "U" else made


class PrincipalMapping:
    """All rules of a setting, in their order."""

    def __init__(self, text: str = DEFAULT_RULES) -> None:
        """The rules that a text holds; empty ones are skipped, and a text of nothing has none.

        Raises:
            BadMappingRule: one of them is none, or they are too long.
            BadJavaPattern: a pattern is none, or cannot be translated.
        """
        if len(text) > RULES_CHARS_MAX:
            raise BadMappingRule(f"principal mapping rules of {len(text)} characters; at most {RULES_CHARS_MAX} can be")
        #: None: DEFAULT.
        self._rules = [_parsed(rule) for rule in _split(text.strip(_BLANKS)) if rule]

    def name_of(self, distinguished_name: str) -> str:
        """The name of the principal whose certificate has this subject. It may be empty.

        Raises:
            NoMatchingRule: no rule is for it.
            BadReplacement: the replacement of the rule that is for it is wrong.
        """
        for rule in self._rules:
            found = distinguished_name if rule is None else rule.applied(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRule(f"none of the {len(self._rules)} principal mapping rules is for {distinguished_name!r}")


def _split(text: str) -> list[str]:
    """At commas, but for those inside of a rule's pattern and replacement."""
    rules = []
    at = 0
    while at <= len(text):
        while text[at : at + 1] and text[at] in _SPACES:
            at += 1
        body = _rule_end(text, at)
        comma = text.find(",", at if body is None else body)
        end = len(text) if comma < 0 else comma
        rules.append(text[at:end].rstrip(_SPACES))
        at = end + 1
    return rules


def _rule_end(text: str, at: int) -> int | None:
    """The place behind the second slash of a rule; None where there is no whole rule."""
    if not text.startswith(_RULE, at):
        return None
    slash = _slash(text, at + len(_RULE))
    second = None if slash is None else _slash(text, slash + 1)
    return None if second is None else second + 1


def _slash(text: str, at: int) -> int | None:
    """The next slash that has no backslash before it."""
    while at < len(text):
        if text[at] == "/":
            return at
        if text[at] == "\\" and (at + 1 == len(text) or text[at + 1] in _LINE_ENDS):
            return None
        at += 2 if text[at] == "\\" else 1
    return None


def _parsed(rule: str) -> MappingRule | None:
    if rule == DEFAULT_RULES:
        return None
    end = _rule_end(rule, 0)
    if end is None or rule[end:] not in ("", "L", "U"):
        raise BadMappingRule(
            f"principal mapping rule {rule[:200]!r}: write RULE:pattern/replacement/, with L or U behind or nothing, "
            f"or {DEFAULT_RULES}"
        )
    slash = _slash(rule, len(_RULE))
    source, replacement = rule[len(_RULE) : slash], rule[(slash or 0) + 1 : end - 1]
    return MappingRule(java_pattern(source), replacement, rule[end:])


def _with_literal_references(replacement: str, groups: int) -> str:
    """References to groups that there are not, made literal as Kafka does it.

    It puts a backslash before each, at the place that the reference has without those before: the second one's
    backslash comes a character too early, and its reference stays one, which then fails.
    """
    if groups == 0:
        return replacement
    value = replacement
    at = 0
    while (dollar := replacement.find("$", at)) >= 0:
        end = dollar + 1
        while replacement[end : end + 1] and replacement[end] in _DIGITS:
            end += 1
        digits = replacement[dollar + 1 : end]
        at = end
        if digits and digits[0] != "0" and _leading_number(digits, groups) > groups:
            value = f"{value[:dollar]}\\{value[dollar:]}"
    return value


def _leading_number(digits: str, groups: int) -> int:
    """Of the digits as many as a group has a number for, at least one."""
    if len(digits) > _GROUP_DIGITS_MAX:
        raise BadReplacement(f"a reference to group {digits[:20]}")
    number = int(digits)
    while number > groups and number >= 10:
        number //= 10
    return number
