"""Selects topics by names, and by patterns in which `*` stands for any characters, or none.

Deliberately no regular expressions: what matching costs is bounded by the lengths alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

#: Of all patterns together: what fits into a request line beside everything else.
PATTERNS_CHARS_MAX: Final = 4_096
#: Patterns with a star: each is held against every name.
_GLOBS_MAX: Final = 8
_STARS_MAX: Final = 4


class InvalidPattern(ValueError):
    """No pattern, or more of them than are looked for at once."""


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """Topics that one of the patterns stands for. No patterns: all topics."""

    patterns: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> NamePatterns:
        """Patterns separated by commas; none in an empty text.

        Raises:
            InvalidPattern: names the pattern and the rule.
        """
        if len(text) > PATTERNS_CHARS_MAX:
            raise InvalidPattern(f"patterns have {len(text)} characters together, {PATTERNS_CHARS_MAX} is the most")
        patterns = tuple(dict.fromkeys(text.split(","))) if text else ()
        for pattern in patterns:
            if not 0 < len(pattern) <= TOPIC_NAME_CHARS_MAX:
                raise InvalidPattern(f"pattern {pattern[:50]!r} must have 1 to {TOPIC_NAME_CHARS_MAX} characters")
            if pattern.count("*") > _STARS_MAX:
                raise InvalidPattern(f"pattern {pattern[:50]!r} has more than {_STARS_MAX} stars")
        if sum("*" in pattern for pattern in patterns) > _GLOBS_MAX:
            raise InvalidPattern(f"more than {_GLOBS_MAX} patterns have a star")
        return cls(patterns)

    def select(self, names: Sequence[str]) -> list[int] | None:
        """Ascending positions of the names meant, of names in ascending order; None where all are."""
        if not self.patterns or "*" in self.patterns:
            return None
        return sorted({position for pattern in self.patterns for position in _positions(pattern, names)})


def _positions(pattern: str, names: Sequence[str]) -> Iterator[int]:
    prefix, star, rest = pattern.partition("*")
    begin = bisect_left(names, prefix)
    if not star:
        if begin < len(names) and names[begin] == pattern:
            yield begin
        return
    # No character of a name comes after this one.
    end = bisect_left(names, prefix + "\U0010ffff")
    if not rest:
        yield from range(begin, end)
        return
    *middle, suffix = rest.split("*")
    yield from (at for at in range(begin, end) if _ends_so(names[at], len(prefix), middle, suffix))


def _ends_so(name: str, start: int, middle: Sequence[str], suffix: str) -> bool:
    """Whether the parts follow one another from ``start`` on: taking each as early as possible misses nothing."""
    for part in middle:
        at = name.find(part, start)
        if at < 0:
            return False
        start = at + len(part)
    return len(name) - len(suffix) >= start and name.endswith(suffix)
