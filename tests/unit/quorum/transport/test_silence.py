"""Which connections are pinged and which are given up, at given times."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest

from quorate.quorum.transport.frames import FRAME_BYTES_MAX, FrameReader, framed
from quorate.quorum.transport.silence import FRAME_BYTES_PER_SECOND, Pulse, SilenceWatch
from tests.default_parts import quorum_timing

TIMING = quorum_timing()
INTERVAL = TIMING.heartbeat_interval


@dataclass
class Link:
    """A connection that is nothing else."""

    pulse: Pulse = field(default_factory=Pulse)
    frames: FrameReader = field(default_factory=FrameReader)

    def __post_init__(self) -> None:
        self.frames.bytes_max = FRAME_BYTES_MAX

    def read(self, data: bytes) -> int:
        """Bytes arrive; how many frames end with them."""
        self.pulse.has_read = True
        return len(list(self.frames.feed(data)))


@dataclass
class Clock:
    """Looks at links at regular times; ``idle`` and ``dead`` are of the last look."""

    links: list[Link]
    now: float = 100.0
    idle: list[Link] = field(default_factory=list)
    dead: list[Link] = field(default_factory=list)
    stuck: list[Link] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watch = SilenceWatch(TIMING, self.now)

    def look(self, after: float = INTERVAL) -> None:
        self.now += after
        self.idle, self.dead, self.stuck = self.watch.look(self.now, self.links)

    def look_until_dead(self, after: float = INTERVAL) -> float:
        """Seconds until a link is given up."""
        begun = self.now
        while not self.dead:
            assert self.now < begun + 1000 * after, "no link was ever given up"
            self.look(after)
        return self.now - begun


def test_silence_nothing_sent_is_pinged_at_each_look() -> None:
    clock = Clock([Link()])

    for _ in range(3):
        clock.look()
        assert clock.idle == clock.links


def test_silence_something_sent_since_the_last_look_is_not_pinged() -> None:
    busy, idle = Link(), Link()
    clock = Clock([busy, idle])
    clock.look()
    busy.pulse.has_sent = True

    clock.look()

    assert clock.idle == [idle]


def test_silence_of_a_few_election_timeouts_gives_the_connection_up() -> None:
    """Not before them, not much after them, and only the connection that is silent."""
    dead, alive = Link(), Link()
    clock = Clock([dead, alive])
    clock.look()
    begun = clock.now
    while not clock.dead:
        alive.pulse.has_read = True
        clock.look()

    assert clock.dead == [dead]
    assert clock.idle == [alive]
    assert TIMING.silence_max <= clock.now - begun < TIMING.silence_max + 2 * INTERVAL
    assert TIMING.silence_max > TIMING.election_timeout_max  # no election comes sooner for it


def test_silence_of_a_one_way_loss_is_blamed_by_who_does_not_hear() -> None:
    """What this end sends says nothing about whether it hears."""
    link = Link()
    clock = Clock([link])
    clock.look()
    begun = clock.now
    while not clock.dead:
        link.pulse.has_sent = True
        clock.look()
        assert clock.now - begun < 2 * TIMING.silence_max

    assert clock.dead == [link]


def test_silence_ends_with_anything_read() -> None:
    link = Link()
    clock = Clock([link])
    for _ in range(50):
        for _ in range(int(TIMING.silence_max / INTERVAL) - 1):
            clock.look()
        link.pulse.has_read = True
        clock.look()
        assert link.pulse.silence == 0.0
        assert not clock.dead


@pytest.mark.parametrize("pause", [TIMING.pause_threshold + 2 * INTERVAL, 10.0, 3600.0])
def test_silence_while_this_process_was_stopped_is_not_blamed(pause: float) -> None:
    """Even just before the limit: the sockets are read after the pause, and then something was heard."""
    link = Link()
    clock = Clock([link])
    clock.look()
    while link.pulse.silence + 1.5 * INTERVAL < TIMING.silence_max:
        clock.look()
    assert not clock.dead

    clock.look(pause)
    assert not clock.dead
    link.pulse.has_read = True
    clock.look()

    assert not clock.dead
    assert link.pulse.silence == 0.0


def test_silence_counts_little_of_a_pause() -> None:
    """Of a pause that both ends made, as of a whole machine: what was under way still has time to arrive."""
    link = Link()
    clock = Clock([link])
    clock.look()
    clock.look(3600.0)

    assert link.pulse.silence <= INTERVAL + TIMING.pause_threshold
    assert clock.look_until_dead() > TIMING.silence_max / 2


def test_silence_is_noticed_by_a_process_that_is_always_late() -> None:
    """Nothing is blamed before it was given the chance to be read, and yet a dead connection is given up."""
    late = INTERVAL + 2 * TIMING.pause_threshold
    clock = Clock([Link()])
    clock.look(late)

    assert clock.look_until_dead(late) < 3 * TIMING.silence_max


def test_silence_is_no_excuse_for_a_frame_that_gets_nowhere() -> None:
    """Its length is too high: what the peer says, a little all the time, is taken for a part of it."""
    stuck, alive = Link(), Link()
    clock = Clock([stuck, alive])
    stuck.read(struct.pack(">I", FRAME_BYTES_MAX))
    begun = clock.now
    while not clock.stuck:
        assert clock.now - begun < 2 * TIMING.silence_max
        stuck.read(framed(b"a heartbeat"))
        alive.read(framed(b"a heartbeat"))
        clock.look()
        assert not clock.dead

    assert clock.stuck == [stuck]
    assert clock.now - begun > TIMING.silence_max
    assert clock.idle == [alive]


@pytest.mark.parametrize("rate", [1.1 * FRAME_BYTES_PER_SECOND, 10 * FRAME_BYTES_PER_SECOND])
def test_silence_does_not_blame_a_slow_link_for_large_frames(rate: float) -> None:
    """Pieces of a checkpoint, one behind the other, as fast as the link carries them."""
    link = Link()
    clock = Clock([link])
    data = framed(bytes(256 * 1024)) * 2
    step = int(rate * INTERVAL)
    ended = 0
    for begin in range(0, len(data), step):
        ended += link.read(data[begin : begin + step])
        clock.look()
        assert clock.dead == clock.stuck == []

    assert ended == 2


def test_silence_counts_each_frame_for_itself() -> None:
    """Whenever it is looked there is a frame under way, but never the same."""
    link = Link()
    clock = Clock([link])
    link.read(framed(b"one")[:3])
    for _ in range(int(10 * TIMING.silence_max / INTERVAL)):
        assert link.read(framed(b"one")[3:] + framed(b"one")[:3]) == 1
        clock.look()
        assert not clock.stuck


def test_silence_of_a_frame_while_this_process_was_stopped_is_not_blamed() -> None:
    link = Link()
    clock = Clock([link])
    link.read(struct.pack(">I", 1_000))
    clock.look()
    clock.look()
    clock.look(3600.0)
    assert link.read(bytes(1_000)) == 1
    clock.look()
    assert not clock.stuck
    assert link.pulse.frame_seconds == 0.0
