"""Regular expressions as automata, to tell those whose matching may take more than linear time.

Python's matcher tries one way through a pattern after the other. So the time for a text is the number of ways in which
the automaton of the pattern can read a part of it, and that number grows faster than the text exactly if (Weber and
Seidl, 1991) there are two states p and q and a text v that leads from p to p, from p to q and from q to q, or one state
and a text that leads back to it in two ways.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from re import _constants as op
from re import _parser
from typing import Any

#: All that patterns of ours tell apart, and some that only Unicode's classes contain.
ALPHABET = frozenset(map(chr, range(256))) | frozenset("\u0131\u0663\u2028\u212a\u5b57")
_CLASSES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
Letters = frozenset[str]
#: Before how many letters an assertion may hold is not looked into, but it is not certain to.
_ASSERTED = ALPHABET - {"\u5b57"}


@dataclass
class _Part:
    """A part of a pattern: where reading begins and ends in it, and before which letters it may be read as nothing."""

    first: list[tuple[int, Letters]] = field(default_factory=list)
    #: With the letters that may come behind.
    last: list[tuple[int, Letters]] = field(default_factory=list)
    #: Empty: never.
    empty_before: Letters = frozenset()


class Automaton:
    """States are the places of a pattern where a letter is read; state 0 is its beginning."""

    def __init__(self, pattern: str | bytes, flags: int, *, is_searched: bool, is_whole: bool) -> None:
        """`is_searched`: it may begin anywhere in the text. `is_whole`: it must reach to the text's end."""
        text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        self._flags = re.compile(pattern, flags).flags
        self._count = 0
        self._is_twice_empty = False
        #: Letters that lead from a state to another, once for each way that the pattern has.
        self._edges: dict[tuple[int, int], list[Letters]] = defaultdict(list)
        parsed = _parser.parse(text, flags)
        whole = self._sequence(parsed)
        begins_line = len(parsed) > 0 and parsed[0] == (op.AT, op.AT_BEGINNING)
        self._is_whole = is_whole
        self._is_searched = is_searched and not (begins_line and not self._flags & re.MULTILINE)
        self._start(whole, only_lines=begins_line and self._is_searched)
        #: Where a match has been found.
        self._ends = {state for state, behind in whole.last if behind == ALPHABET}

    def slow_places(self) -> Iterator[str]:
        """Say what may take more than linear time; nothing if nothing does."""
        if self._is_twice_empty:
            yield "a part may be nothing in two ways"
            return
        steps = self._steps()
        for state, (one, other) in self._forks(steps):
            if self._reaches(steps, (one, other), (state, state)):
                yield "one text is read in two ways again and again"
                return
        for p, q in product(range(self._count + 1), repeat=2):
            if p != q and not self._cannot_fail(q) and self._reaches(steps, (p, p, q), (p, q, q)):
                yield "two repetitions share a text"
                return

    def _steps(self) -> dict[int, list[tuple[int, int, Letters]]]:
        """By state: the next one, which of the edges leads there, its letters."""
        found: dict[int, list[tuple[int, int, Letters]]] = {state: [] for state in range(self._count + 1)}
        for (begin, end), several in list(self._edges.items()):
            found[begin].extend((end, number, letters) for number, letters in enumerate(several) if letters)
        return found

    @staticmethod
    def _forks(steps: dict[int, list[tuple[int, int, Letters]]]) -> Iterator[tuple[int, tuple[int, int]]]:
        for state, ways in steps.items():
            for number, (one, _, letters) in enumerate(ways):
                for other, _, others in ways[number + 1 :]:
                    if letters & others:
                        yield state, (one, other)

    @staticmethod
    def _reaches(
        steps: dict[int, list[tuple[int, int, Letters]]], begin: tuple[int, ...], end: tuple[int, ...]
    ) -> bool:
        """Whether one text, perhaps none, leads from each state of `begin` to that of `end`."""
        seen, waiting = {begin}, [begin]
        while waiting:
            states = waiting.pop()
            if states == end:
                return True
            for moves in product(*(steps[state] for state in states)):
                after = tuple(move[0] for move in moves)
                if after not in seen and frozenset.intersection(*(move[2] for move in moves)):
                    seen.add(after)
                    waiting.append(after)
        return False

    def _cannot_fail(self, state: int) -> bool:
        """Whether a match is certain in a state, so that nothing else is tried."""
        return state in self._ends and (not self._is_whole or ALPHABET in self._edges[state, state])

    def _start(self, whole: _Part, *, only_lines: bool) -> None:
        starts = [(0, ALPHABET)]
        if self._is_searched:
            self._edges[0, 0].append(ALPHABET)
        if only_lines:
            self._count += 1
            self._edges[0, self._count].append(frozenset("\n"))
            starts = [(self._count, ALPHABET)]
        self._connect(starts, whole.first)

    # --- from the parsed pattern ---------------------------------------------------------------------

    def _sequence(self, items: Iterable[tuple[Any, Any]]) -> _Part:
        whole = _Part(empty_before=ALPHABET)
        for item in items:
            part = self._part(*item)
            self._connect(whole.last, part.first)
            first = [(state, letters & whole.empty_before) for state, letters in part.first]
            last = [(state, behind & part.empty_before) for state, behind in whole.last]
            whole = _Part(
                whole.first + [one for one in first if one[1]],
                part.last + [one for one in last if one[1]],
                whole.empty_before & part.empty_before,
            )
        return whole

    def _connect(self, last: list[tuple[int, Letters]], first: list[tuple[int, Letters]]) -> None:
        for (begin, behind), (end, letters) in product(last, first):
            self._edges[begin, end].append(behind & letters)

    def _part(self, kind: Any, value: Any) -> _Part:
        if kind is op.SUBPATTERN:
            return self._sequence(value[3])
        if kind is op.ATOMIC_GROUP:
            return self._sequence(value)
        if kind is op.BRANCH:
            return self._either([self._sequence(branch) for branch in value[1]])
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeat(*value, keeps=kind is op.POSSESSIVE_REPEAT)
        if kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
            return _Part(empty_before=_ASSERTED)
        self._count += 1
        return _Part([(self._count, self._letters(kind, value))], [(self._count, ALPHABET)])

    def _either(self, parts: list[_Part]) -> _Part:
        self._is_twice_empty |= sum(bool(part.empty_before) for part in parts) > 1
        empty_before: Letters = frozenset().union(*(part.empty_before for part in parts))
        return _Part([x for part in parts for x in part.first], [x for part in parts for x in part.last], empty_before)

    def _repeat(self, least: int, most: int, items: Any, *, keeps: bool) -> _Part:
        """`keeps`: it takes what it can and gives nothing back."""
        body = self._sequence(items)
        self._is_twice_empty |= least == 0 and bool(body.empty_before)
        if most > 1:
            self._connect(body.last, body.first)
        behind = ALPHABET
        if keeps and len(items) == 1 and len(body.first) == 1 and most == op.MAXREPEAT:
            behind -= body.first[0][1]
        last = [(state, letters & behind) for state, letters in body.last]
        return _Part(body.first, last, behind if least == 0 else body.empty_before)

    def _letters(self, kind: Any, value: Any) -> Letters:
        if kind is op.ANY:
            return ALPHABET if self._flags & re.DOTALL else ALPHABET - {"\n"}
        if kind is op.LITERAL:
            both = {chr(value).lower(), chr(value).upper()} if self._flags & re.IGNORECASE else {chr(value)}
            return ALPHABET & both
        if kind is op.NOT_LITERAL:
            return ALPHABET - self._letters(op.LITERAL, value)
        if kind is op.RANGE:
            return frozenset().union(*(self._letters(op.LITERAL, x) for x in range(value[0], value[1] + 1)))
        if kind is op.CATEGORY:
            return frozenset(x for x in ALPHABET if re.match(_CLASSES[value], x, self._flags & re.ASCII))
        if kind is op.IN:
            negated = value[0][0] is op.NEGATE
            found: Letters = frozenset().union(*(self._letters(*one) for one in value[negated:]))
            return ALPHABET - found if negated else found
        raise AssertionError(f"{kind} is nothing that can be told to be linear: do without it")
