"""`--since` and `--until`: the part of a log that a command tells."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

import typer

from quorate.metadata_log.batches.batch import BatchHeader
from quorate.scripts.terminal.output import format_time
from quorate.snapshots.checkpoints.moments import InvalidMoment, Moment, parse_moment
from quorate.snapshots.replay.replay_state import ReplayState

_RELATIVE: Final = re.compile(r"^([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d|w)$")
_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RULE: Final = (
    "say how long ago, as 90s, 30m, 2h or 7d, in 9 digits at most, or a time as 2026-01-31T12:00:00Z, an offset, "
    "or epoch:7"
)


def _checked(text: str | None) -> str | None:
    if text is not None:
        moment_of(text, 0)
    return text


Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="AGO|TIME|OFFSET|epoch:N",
        help="Nothing from before: 2h (90s, 30m, 7d) ago, a time (2026-01-31T12:00:00Z), an offset, the end of an "
        "epoch.",
        callback=_checked,
        show_default=False,
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="AGO|TIME|OFFSET|epoch:N",
        help="Nothing from after it; offsets below it.",
        callback=_checked,
        show_default=False,
    ),
]


class TimeSpan(NamedTuple):
    """The batches between two moments; None: no bound on that side. One at the very time of a bound belongs to it."""

    since: Moment | None = None
    until: Moment | None = None

    @classmethod
    def of(cls, since: str | None, until: str | None, now_ms: Callable[[], int] | None = None) -> TimeSpan:
        """The span that two options name.

        Args:
            now_ms: milliseconds since 1970; the machine's clock.

        Raises:
            typer.BadParameter: one of them names no moment, or it ends before it begins.
        """
        now = (now_ms or (lambda: time.time_ns() // 1_000_000))()
        first, last = (None if text is None else moment_of(text, now) for text in (since, until))
        for name in ("offset", "time_ms", "epoch"):
            begin, end = getattr(first, name, None), getattr(last, name, None)
            if begin is not None and end is not None and begin > end:
                raise typer.BadParameter(f"{until} is before --since {since}", param_hint="--until")
        return cls(first, last)

    def holds(self, header: BatchHeader) -> bool:
        """Whether some of a batch's records lie in it."""
        return self._is_late_enough(header) and self._is_early_enough(header)

    def is_over(self, header: BatchHeader) -> bool:
        """Whether a batch, and what follows it in a log whose times do not fall, lies behind it."""
        return not self._is_early_enough(header)

    def _is_late_enough(self, header: BatchHeader) -> bool:
        since = self.since
        if since is None:
            return True
        if since.offset is not None:
            return header.end_offset > since.offset
        if since.time_ms is not None:
            return header.timestamp >= since.time_ms
        return header.epoch > (since.epoch or 0)

    def _is_early_enough(self, header: BatchHeader) -> bool:
        until = self.until
        if until is None:
            return True
        if until.time_ms is not None:
            return header.timestamp <= until.time_ms
        return not until.is_before(header)

    def missed_by(self, end: BatchHeader) -> str:
        """The end of a log whose last batch this is, in words, if it is before all of the span; else nothing."""
        if self._is_late_enough(end):
            return ""
        at = f"offset {end.end_offset}, time {format_time(end.timestamp)}"
        return f"the log ends at {at}, before what --since names"

    def holds_offset(self, offset: int) -> bool:
        """Whether it has a record, as far as it is bounded by offsets."""
        since, until = self.since, self.until
        return (since is None or since.offset is None or offset >= since.offset) and (
            until is None or until.offset is None or offset < until.offset
        )

    def begins_behind(self, state: ReplayState) -> bool:
        """Whether all of it lies behind a state."""
        at = state.stable.provenance
        if self.since is None:
            return False
        if self.since.time_ms is not None:
            return at.log_time_ms < self.since.time_ms
        return self.since.reaches(at.end_offset, at.epoch, at.log_time_ms)


def say_where_it_ends(span: TimeSpan, end: BatchHeader) -> None:
    """Tell on standard error where a log ends, if that is before all of a span: who reads a copy may not know."""
    missed = span.missed_by(end)
    if missed:
        sys.stderr.write(f"quorate: {missed}\n")


def moment_of(text: str, now_ms: int) -> Moment:
    """A moment by its distance from now, or as every command takes it.

    Args:
        now_ms: milliseconds since 1970.

    Raises:
        typer.BadParameter: the text is neither.
    """
    relative = _RELATIVE.fullmatch(text)
    if relative is not None:
        return Moment(time_ms=max(0, now_ms - round(float(relative[1]) * _MS[relative[2]])))
    try:
        return parse_moment(text)
    except InvalidMoment:
        raise typer.BadParameter(f"{text[:80]!r} is no moment: {_RULE}") from None
