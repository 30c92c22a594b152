"""Logs the changes of the cluster on the active controller: a line for each kind of change (``state_changes``).

A thread beside the loop looks at the committed state ten times a second and compares it with what it told last; the
loop only remembers who asked. What comes in one go is told in one go: when nothing has moved since the last look, at
the latest after a second. Where it comes in masses, as where a broker is lost, it is told two seconds after the last of
it, at the latest after ten; what became of partitions, which is the dear part, after a minute. What is taken back in
between is not told: `quorate history` has every record.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, Protocol

import structlog

from quorate.controller.background.shared import MASS_RECORDS
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.partition_changes import partition_changes
from quorate.controller.logs.state_changes import NAMED_MAX, StateChange, state_changes
from quorate.metadata_log.tracebacks import traceback_text
from quorate.snapshots.image.image import MetadataImage

log = structlog.get_logger()

_LOOK_SECONDS: Final = 0.1
_TOLD_WITHIN_SECONDS: Final = 1.0
#: The same while a mass change goes on, which somebody waits for: to compare takes a share of a core that it needs.
_MASS_TOLD_WITHIN_SECONDS: Final = 10.0
#: ... of partitions, which are nearly all that there is to compare.
_MASS_OF_PARTITIONS_TOLD_WITHIN_SECONDS: Final = 60.0
#: So long after its last record those need for it who follow.
_REST_AFTER_MASS_SECONDS: Final = 2.0
#: Share of a core that comparing may take: a million partitions that all changed take some tenths of a second.
_SHARE: Final = 0.02
#: Events that wait to be named with what they did: beyond them the oldest are not named.
_EVENTS_MAX: Final = 1_000


class Observed(Protocol):
    """The controller that is watched (``engine.quorum_controller.QuorumController``); read from another thread, never
    changed.
    """

    @property
    def is_active(self) -> bool:
        """Whether this controller decides."""

    @property
    def stable(self) -> MetadataImage:
        """The committed state."""


class _Lines:
    """The lines of one kind: what they were told up to, and when they are told next. Seconds are monotonic."""

    def __init__(
        self,
        between: Callable[[MetadataImage, MetadataImage], Iterator[StateChange]],
        mass_told_within: float,
        told: MetadataImage,
    ) -> None:
        self.told = told
        #: (exclusive end of its records, its name, who asked): appended to by the loop, taken from by the thread.
        self.events: deque[tuple[int, str, str | None]] = deque(maxlen=_EVENTS_MAX)
        self._between = between
        self._mass_told_within = mass_told_within
        #: Since when there is something to tell; None: there is nothing.
        self._since: float | None = None
        self._not_before = 0.0

    def come(self, records: int, now: float) -> None:
        """Note that so many records more are committed."""
        self._since = now if self._since is None else self._since
        if records >= MASS_RECORDS:
            rested = min(now + _REST_AFTER_MASS_SECONDS, self._since + self._mass_told_within)
            self._not_before = max(self._not_before, rested)

    def is_due(self, now: float, *, moves: bool, is_last: bool) -> bool:
        """Whether to tell now. ``moves``: it has not rested; ``is_last``: nobody will tell it later."""
        if self._since is None or is_last:
            return self._since is not None
        return now >= self._not_before and not (moves and now - self._since < _TOLD_WITHIN_SECONDS)

    def tell(self, stable: MetadataImage, now: float) -> None:
        """Tell what differs from what was told."""
        begun = time.thread_time()
        old, self.told, self._since = self.told, stable, None
        cause = self._cause(stable.provenance.end_offset)
        where = {"offset": stable.provenance.end_offset, "epoch": stable.provenance.epoch}
        for change in self._between(old, stable):
            say = log.warning if change.level == "warning" else log.info
            say(change.event, **change.fields, **cause, **where)
        self._not_before = now + (time.thread_time() - begun) / _SHARE

    def _cause(self, end_offset: int) -> dict[str, Any]:
        """The events that wrote what is committed now, and who asked for them; both by how often."""
        names: Counter[str] = Counter()
        principals: Counter[str] = Counter()
        while self.events and self.events[0][0] <= end_offset:
            _, name, principal = self.events.popleft()
            names[name] += 1
            principals.update(() if principal is None else (principal,))
        by = [principal for principal, _ in principals.most_common(NAMED_MAX)]
        return {"events": [name for name, _ in names.most_common(NAMED_MAX)], "by": by}


class StateLog:
    """``note`` belongs to the loop thread, everything else to the one that ``start`` starts."""

    def __init__(
        self, controller: Observed, not_heard_ms: Callable[[int], float | None], log_start: Callable[[], int]
    ) -> None:
        """``not_heard_ms``: how long ago a broker was last heard of. ``log_start``: where this node's log begins."""
        self._controller = controller
        self._log_start = log_start
        self._log_begins = log_start()
        self._seen = seen = controller.stable
        self._was_active = False
        self._kinds = (
            _Lines(lambda old, new: state_changes(old, new, not_heard_ms), _MASS_TOLD_WITHIN_SECONDS, seen),
            _Lines(partition_changes, _MASS_OF_PARTITIONS_TOLD_WITHIN_SECONDS, seen),
        )
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state-log", daemon=True)

    def note(self, write: DecidedWrite) -> None:
        """An event was decided that wrote records."""
        origin = write.origin
        for lines in self._kinds:
            lines.events.append((write.end_offset, write.name, None if origin is None else origin.principal))

    def start(self) -> None:
        """Begin to tell."""
        self._thread.start()

    def close(self) -> None:
        """Tell what is left, and end."""
        self._is_closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closing.wait(_LOOK_SECONDS):
            self._look_and_go_on()
        self._look_and_go_on()

    def _look_and_go_on(self) -> None:
        try:
            self.look(time.monotonic())
        except Exception as error:  # noqa: BLE001 - what cannot be told costs the lines, never the thread
            log.error("state_log.failed", error=str(error), exception=traceback_text(error))

    def look(self, now: float) -> None:
        """Tell what is due. ``now`` in seconds, monotonic."""
        begins = self._log_start()
        if begins != self._log_begins:
            log.info("log.cut", begins_at=begins, began_at=self._log_begins)
            self._log_begins = begins
        is_active, stable = self._controller.is_active, self._controller.stable
        was_active, self._was_active = self._was_active, is_active
        before, self._seen = self._seen, stable
        if not (is_active or was_active):
            # Who is active tells; what a standby loads and replays has been told.
            for lines in self._kinds:
                lines.told = stable
            return
        moves, is_last = stable is not before, not is_active or self._is_closing.is_set()
        if moves:  # noted for all of them before any is told, which may fail
            for lines in self._kinds:
                lines.come(stable.provenance.end_offset - before.provenance.end_offset, now)
        with ExitStack() as telling:  # where one fails, the others are told none the less: this may be the last look
            for lines in reversed(self._kinds):
                if not is_active:  # after it was told: what has not committed by now may never do so
                    telling.callback(lines.events.clear)
                if lines.is_due(now, moves=moves, is_last=is_last):
                    telling.callback(lines.tell, stable, now)
