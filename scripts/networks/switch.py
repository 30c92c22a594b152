"""The switch that all machines hang on: a process that forwards their frames, each link under its rule.

``python -m quorate.scripts.networks.switch CONTROL SEED TAP...``: descriptors. It reads one JSON object a line from
CONTROL, answers each with one, and ends with it. A process of its own: whoever measures does not hold up what is
measured.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, Final

from quorate.scripts.networks.links import WIRE, MiddleBox, NetworkLink, Rule
from quorate.scripts.worker_pool import die_with_parent

_FRAME_BYTES_MAX: Final = 65_536
#: Frames read from one machine before the others have their turn.
_TURN_FRAMES: Final = 64
#: Frames that are on their way; more are dropped, and that is said.
_WAITING_MAX: Final = 100_000
_LINE_BYTES_MAX: Final = 1024 * 1024
_OWN_MAC_HEAD: Final = b"\x02\x00\x00\x00\x00"


@dataclass(slots=True)
class FrameCounts:
    """The numbers of frames by their fate. Only ``overload`` and ``late_ms_max`` are not what the rules wanted."""

    forwarded: int = 0
    #: By a rule or a middle-box.
    lost: int = 0
    #: As too many were on their way.
    overload: int = 0
    #: The longest that one was passed on after its time, or that the switch was busy before it could look again.
    late_ms_max: float = 0.0


@dataclass(slots=True)
class Switch:
    """All links, and what is on them."""

    taps: Sequence[int]
    seed: int
    counts: FrameCounts = field(default_factory=FrameCounts)
    _links: dict[tuple[int, int], NetworkLink] = field(default_factory=dict)
    _boxes: dict[frozenset[int], MiddleBox] = field(default_factory=dict)
    #: (when, number, machine, frame) of those on their way.
    _waiting: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        everyone = range(len(self.taps))
        self._links = {
            (a, b): NetworkLink(Random(f"{self.seed} {a} {b}")) for a in everyone for b in everyone if a != b
        }

    # --- what it is told -----------------------------------------------------------------------------

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out an order at once; the answer says when."""
        for source, target, rule in order.get("rules", ()):
            given = Rule(**rule)
            self._links[source, target].rule = WIRE if given == WIRE else given
        for one, other, idle_s in order.get("boxes", ()):
            self._boxes[frozenset((one, other))] = MiddleBox(idle_s)
        forgotten = sum(self._boxes[frozenset(pair)].forget() for pair in order.get("forget", ()))
        counts = self.counts
        return {
            "at": time.monotonic(),
            "forgotten": forgotten,
            "forwarded": counts.forwarded,
            "lost": counts.lost,
            "overload": counts.overload,
            "late_ms_max": counts.late_ms_max,
        }

    # --- frames --------------------------------------------------------------------------------------

    def take(self, source: int) -> None:
        """Read what a machine has sent."""
        tap = self.taps[source]
        for _ in range(_TURN_FRAMES):
            try:
                frame = os.read(tap, _FRAME_BYTES_MAX)
            except BlockingIOError:
                return
            target = frame[5] - 1
            if frame[:5] == _OWN_MAC_HEAD and 0 <= target < len(self.taps):
                if target != source:
                    self._send(source, target, frame)
            else:
                for other in range(len(self.taps)):
                    if other != source:
                        self._send(source, other, frame)

    def _send(self, source: int, target: int, frame: bytes) -> None:
        now = time.monotonic()
        box = self._boxes.get(frozenset((source, target))) if self._boxes else None
        is_through = box is None or box.passes(frame, now)
        due = self._links[source, target].deliveries(now, len(frame)) if is_through else ()
        if not due:
            self.counts.lost += 1
        for at in due:
            if at <= now:
                self._deliver(target, frame)
            elif len(self._waiting) >= _WAITING_MAX:
                self.counts.overload += 1
            else:
                heapq.heappush(self._waiting, (at, next(self._numbers), target, frame))

    def _deliver(self, target: int, frame: bytes) -> None:
        try:
            os.write(self.taps[target], frame)
        except OSError:
            self.counts.overload += 1
        else:
            self.counts.forwarded += 1

    def deliver_due(self) -> float | None:
        """Pass on what is due; seconds until the next is, None if nothing is on its way."""
        waiting = self._waiting
        while waiting:
            now = time.monotonic()
            if waiting[0][0] > now:
                return waiting[0][0] - now
            at, _, target, frame = heapq.heappop(waiting)
            self.note_late(now - at)
            self._deliver(target, frame)
        return None

    def note_late(self, seconds: float) -> None:
        """Something was done so much later than it should have been."""
        self.counts.late_ms_max = max(self.counts.late_ms_max, seconds * 1000)


def run(switch: Switch, control: socket.socket) -> None:
    """Forward frames and obey, until the other side of ``control`` is gone."""
    poll = select.epoll()
    poll.register(control, select.EPOLLIN)
    machines = {tap: number for number, tap in enumerate(switch.taps)}
    for tap in machines:
        poll.register(tap, select.EPOLLIN)
    orders = b""
    while True:
        wait_s = switch.deliver_due()
        ready = poll.poll(wait_s)
        woken_at = time.monotonic()
        for descriptor, _ in ready:
            if descriptor in machines:
                switch.take(machines[descriptor])
                continue
            data = control.recv(_LINE_BYTES_MAX)
            if not data:
                return
            *lines, orders = (orders + data).split(b"\n")
            for line in lines:
                control.sendall(json.dumps(switch.obey(json.loads(line))).encode() + b"\n")
        switch.note_late(time.monotonic() - woken_at)


def main() -> None:
    """See the module."""
    die_with_parent()
    control, seed, *taps = map(int, sys.argv[1:])
    with socket.socket(fileno=control) as told:
        run(Switch(taps, seed), told)


if __name__ == "__main__":
    main()
