"""What a PromQL expression asks for: names of metrics with the labels that it matches or groups by. No evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""\s+|(?P<text>"[^"]*")|(?P<duration>[0-9]+(?:ms|[smhdwy]))(?![\w.])|(?P<number>[0-9][0-9.]*(?:e[0-9]+)?|Inf)|"""
    r"""(?P<name>[A-Za-z_:][\w:]*)|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],])"""
)
#: Of the language, in small letters; what is followed by a parenthesis is a function.
_WORDS: Final = frozenset({"and", "or", "unless", "bool", "offset", "atan2"})
_GROUPING: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})


class Asked(NamedTuple):
    """One expression's needs."""

    #: Metric -> labels that a selector of it matches.
    metrics: dict[str, frozenset[str]]
    #: Labels by which results are grouped or matched.
    grouping: frozenset[str]


def asked_for(expression: str) -> Asked:
    """Raises ValueError where it is no expression of the part of the language that is known here."""
    tokens = list(_tokens(expression))
    metrics: dict[str, frozenset[str]] = {}
    grouping: set[str] = set()
    at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if kind != "name" or text in _WORDS:
            at += 1
        elif text in _GROUPING:
            end = tokens.index(("sign", ")"), at)
            grouping |= {word for kind, word in tokens[at:end] if kind == "name"} - {text}
            at = end + 1
        elif following == "(":
            at += 1
        elif following == "{":
            end = tokens.index(("sign", "}"), at)
            names = [tokens[place][1] for place in range(at + 2, end, 4)]
            metrics[text] = metrics.get(text, frozenset()) | frozenset(names)
            at = end + 1
        elif following in _GROUPING:
            at += 1  # an aggregation that says first by what: sum by (job) (...)
        else:
            metrics.setdefault(text, frozenset())
            at += 1
    return Asked(metrics, frozenset(grouping))


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(expression):
        found = _TOKEN.match(expression, at)
        if found is None:
            raise ValueError(f"{expression[at : at + 20]!r} is nothing that is known")
        if found.lastgroup is not None:
            yield found.lastgroup, found[0]
        at = found.end()
