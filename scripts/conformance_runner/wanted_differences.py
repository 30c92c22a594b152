"""Decisions that are meant to be others than Kafka's: a row for each place in each vector that shows one, with why.

A row is used up: where the two agree again, or Quorate has come to something else, the vector fails until the row is
gone or right. A scenario ends at its first step that differs, wanted or not, for what follows is about another cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from quorate.scripts.conformance_runner.comparison import Difference
from quorate.scripts.conformance_runner.outcome import VectorOutcome


@dataclass(frozen=True, slots=True)
class WantedDifference:
    """One place in one vector."""

    vector_id: str
    #: As ``scripts/conformance --id VECTOR -v`` prints it.
    place: str
    #: What Quorate comes to there, as it is in JSON.
    ours: Any
    #: Why Quorate does not do what Kafka does; docs/conformance.md says more of it.
    reason: str


#: None today. What cannot be told by place, a change that Kafka writes twice, is in ``kinds.repetition``.
WANTED: Final[tuple[WantedDifference, ...]] = ()


def judged(outcome: VectorOutcome, wanted: Sequence[WantedDifference] = WANTED) -> VectorOutcome:
    """The outcome without the differences that are wanted, and with one for each that was wanted and is not there."""
    rows = [row for row in wanted if row.vector_id == outcome.vector_id]
    if not rows:
        return outcome
    unused = list(rows)
    left: list[Difference] = []
    for difference in outcome.differences:
        row = next((row for row in unused if (row.place, row.ours) == (difference.place, difference.got)), None)
        if row is None:
            left.append(difference)
        else:
            unused.remove(row)
    left += [Difference(row.place, row.ours, f"no such difference: take its row out ({row.reason})") for row in unused]
    return replace(outcome, differences=left)
