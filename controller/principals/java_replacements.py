"""``String.replaceAll`` of Java: every match of a pattern, the empty ones too, gives way to a text with references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from quorate.metadata_log.errors import QuorateError

_DIGITS: Final = "0123456789"


class BadReplacement(QuorateError, ValueError):
    """A replacement that is found to be wrong when it is used. Java's ``IllegalArgumentException``."""


class NoSuchGroup(BadReplacement):
    """A replacement that refers to a group that the pattern does not have. Java's ``IndexOutOfBoundsException``."""


def replace_all(pattern: re.Pattern[str], text: str, replacement: str) -> str:
    """The text with all matches replaced.

    In the replacement ``$1`` to ``$9`` and on stand for groups, ``${name}`` for named ones, and a backslash takes the
    meaning of the character behind it away.

    Raises:
        BadReplacement: it breaks off, or a group has no number and no name.
        NoSuchGroup: there is no group of this number.
    """
    parts = []
    end = 0
    for match in _matches(pattern, text):
        parts.append(text[end : match.start()])
        parts.extend(_expanded(match, replacement))
        end = match.end()
    return "".join(parts) + text[end:]


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As ``Matcher.find`` goes on: behind an empty match at the next character, which Python's own search does not."""
    at = 0
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            return
        yield match
        at = match.end() + (match.end() == match.start())


def _expanded(match: re.Match[str], replacement: str) -> Iterator[str]:
    at = 0
    while at < len(replacement):
        char = replacement[at]
        at += 1
        if char == "\\":
            if at == len(replacement):
                raise BadReplacement("the replacement ends with a backslash")
            yield replacement[at]
            at += 1
        elif char == "$":
            group, at = _reference(match, replacement, at)
            yield match[group] or ""
        else:
            yield char


def _reference(match: re.Match[str], replacement: str, at: int) -> tuple[int | str, int]:
    """The group that a reference names, and the place behind it; ``at`` is the place behind its dollar."""
    if at == len(replacement):
        raise BadReplacement("the replacement ends with a $")
    if replacement[at] == "{":
        return _named(match, replacement, at + 1)
    if replacement[at] not in _DIGITS:
        raise BadReplacement(f"a $ before {replacement[at]!r}, which is no number of a group")
    number = int(replacement[at])
    at += 1
    # As many digits as there are groups for.
    while at < len(replacement) and replacement[at] in _DIGITS:
        longer = number * 10 + int(replacement[at])
        if longer > match.re.groups:
            break
        number = longer
        at += 1
    if number > match.re.groups:
        raise NoSuchGroup(f"no group {number}: the pattern has {match.re.groups}")
    return number, at


def _named(match: re.Match[str], replacement: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(replacement) and replacement[end].isascii() and replacement[end].isalnum():
        end += 1
    name = replacement[at:end]
    if not name or replacement[end : end + 1] != "}":
        raise BadReplacement("a ${ without a name of letters and digits and a } behind")
    if name not in match.re.groupindex:
        raise BadReplacement(f"no group with the name {name!r}")
    return name, end + 1
