"""The output of a run: its progress, a summary for each kind of vector, and the last line with the verdict."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any, Final

from quorate.scripts.conformance_runner.outcome import VectorOutcome

_PROGRESS_SECONDS: Final = 5.0
_IDS_SHOWN_MAX: Final = 5


class Report:
    """Outcomes of a run, counted by kind."""

    def __init__(self, *, is_verbose: bool) -> None:
        self._is_verbose = is_verbose
        self._passed: Counter[str] = Counter()
        self._failed: dict[str, list[str]] = {}
        self._steps: Counter[tuple[str, bool]] = Counter()
        self._ended_early: list[str] = []
        self._started = self._spoke = time.monotonic()

    @property
    def failed_count(self) -> int:
        """Vectors that failed."""
        return sum(map(len, self._failed.values()))

    @property
    def count(self) -> int:
        """Vectors that were run."""
        return self._passed.total() + self.failed_count

    def add(self, kind: str, vector: Any, outcome: VectorOutcome) -> None:
        """One more outcome."""
        self._passed[kind] += outcome.has_passed
        self._failed.setdefault(kind, [])
        self._steps += outcome.steps
        if not outcome.has_passed:
            self._failed[kind].append(outcome.vector_id)
        if outcome.has_repetition:
            self._ended_early.append(outcome.vector_id)
        if self._is_verbose:
            self._show(vector, outcome)
        now = time.monotonic()
        if now - self._spoke >= _PROGRESS_SECONDS:
            self._spoke = now
            print(f"{kind}: {self.count:,} vectors done, {self.failed_count:,} failed", file=sys.stderr, flush=True)

    def _show(self, vector: Any, outcome: VectorOutcome) -> None:
        if outcome.has_passed:
            return
        given = vector["input"]
        shown = given if outcome.failed_step is None else given["ops"][outcome.failed_step]
        print(f"{outcome.vector_id}: {json.dumps(shown)}")
        for difference in outcome.differences:
            print(f"    {difference}")

    def close(self) -> None:
        """The summary and the verdict."""
        for kind, failed in self._failed.items():
            print(f"{kind}: {self._passed[kind]:,} passed, {len(failed):,} failed")
            if failed and not self._is_verbose:
                print(f"    {_shown(failed)} (show one: --id {failed[0]} -v)")
        for name in sorted({name for name, _ in self._steps}):
            print(f"    {name}: {self._steps[name, True]:,} steps agreed, {self._steps[name, False]:,} did not")
        if self._ended_early:
            print(
                f"    {len(self._ended_early):,} ended at a change that Kafka writes twice: {_shown(self._ended_early)}"
            )
        print(f"{time.monotonic() - self._started:.0f} s", file=sys.stderr)
        print(f"{self.count - self.failed_count} passed, {self.failed_count} failed")


def _shown(ids: list[str]) -> str:
    return ", ".join(ids[:_IDS_SHOWN_MAX]) + (", …" if len(ids) > _IDS_SHOWN_MAX else "")
