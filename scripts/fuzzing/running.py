"""Runs inputs, each with a limit of time."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import Final

from quorate.scripts.fuzzing.corpus import Corpus
from quorate.scripts.fuzzing.targets import TARGETS, HttpTarget

#: Seconds that one input may take; the slowest take some milliseconds.
INPUT_SECONDS_MAX: Final = 10


class Hang(BaseException):
    """An input took too long. No production code may catch it."""


@dataclass(slots=True)
class FuzzFinding:
    """An input that was neither refused nor read right."""

    target: str
    number: int
    data: bytes
    failure: str


@dataclass(slots=True)
class Tally:
    """The numbers of inputs by their outcome."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[FuzzFinding] = field(default_factory=list)


def run_inputs(target: str, corpus: Corpus, seed: int, numbers: range) -> Tally:
    """Make and run these inputs of a target; each depends on the seed and its number alone."""
    tally = Tally()
    made = TARGETS[target](corpus)
    try:
        for number in numbers:
            data = made.make(Random(f"{seed} {target} {number}"))
            try:
                with _limited():
                    is_taken = made.run(data)
            except (Exception, Hang):  # noqa: BLE001  # whatever it is, it is no typed error
                tally.counts["wrong"] += 1
                tally.findings.append(FuzzFinding(target, number, data, traceback.format_exc()))
                made = TARGETS[target](corpus)
            else:
                tally.counts["taken" if is_taken else "refused"] += 1
    finally:
        if isinstance(made, HttpTarget):
            made.close()
    return tally


@contextmanager
def _limited() -> Iterator[None]:
    def hang(number: int, frame: FrameType | None) -> None:
        raise Hang(f"an input took longer than {INPUT_SECONDS_MAX} s")

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, INPUT_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
