"""What links, middle-boxes and the switch do to frames."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from quorate.scripts.networks.links import DOWN, WIRE, MiddleBox, NetworkLink, Rule, tcp_segment
from quorate.scripts.networks.switch import Switch

FRAMES = 20_000
SYN, ACK = 0x02, 0x10


def frame(source: str, target: str, flags: int, *, options: int = 0, protocol: int = 6) -> bytes:
    """A TCP segment between ``10.0.0.n:port``, in IPv4 with so many words of options, in Ethernet."""
    (from_host, from_port), (to_host, to_port) = (text.split(":") for text in (source, target))
    ethernet = bytes((2, 0, 0, 0, 0, int(to_host))) + bytes((2, 0, 0, 0, 0, int(from_host))) + b"\x08\x00"
    ip = struct.pack(
        ">BBHHHBBH4B4B", 0x45 + options, 0, 0, 0, 0, 64, protocol, 0, 10, 0, 0, int(from_host), 10, 0, 0, int(to_host)
    )
    return (
        ethernet
        + ip
        + bytes(4 * options)
        + struct.pack(">HHIIBBHHH", int(from_port), int(to_port), 0, 0, 80, flags, 0, 0, 0)
    )


def link(rule: Rule, seed: int = 1) -> NetworkLink:
    return NetworkLink(Random(seed), rule)


def test_a_wire_delivers_at_once_and_a_cut_one_never() -> None:
    assert link(WIRE).deliveries(5.0, 100) == (5.0,)
    assert link(DOWN).deliveries(5.0, 100) == ()


@pytest.mark.parametrize("loss", [0.05, 0.3])
def test_the_share_of_frames_is_lost_that_the_rule_says(loss: float) -> None:
    wire = link(Rule(loss=loss))
    lost = sum(not wire.deliveries(0.0, 100) for _ in range(FRAMES))
    assert lost / FRAMES == pytest.approx(loss, abs=0.02)


def test_frames_are_duplicated_and_held_back_by_their_shares() -> None:
    wire = link(Rule(duplicate=0.1, delay_ms=10.0, reorder=0.25, reorder_ms=30.0))
    deliveries = [wire.deliveries(1.0, 100) for _ in range(FRAMES)]
    assert sum(len(one) == 2 for one in deliveries) / FRAMES == pytest.approx(0.1, abs=0.02)
    assert {round(at - 1.0, 6) for one in deliveries for at in one} == {0.01, 0.04}
    assert sum(one[0] > 1.03 for one in deliveries) / FRAMES == pytest.approx(0.25, abs=0.02)


def test_jitter_stays_within_its_bounds() -> None:
    wire = link(Rule(delay_ms=20.0, jitter_ms=5.0))
    late = [wire.deliveries(0.0, 100)[0] for _ in range(FRAMES)]
    assert 0.02 <= min(late) < 0.0205
    assert 0.0245 < max(late) <= 0.025


def test_a_rate_lets_frames_through_one_after_the_other_and_drops_what_does_not_fit_its_buffer() -> None:
    wire = link(Rule(rate_kbit=80.0))  # 10,000 bytes a second
    at = [wire.deliveries(0.0, 1_000) for _ in range(100)]
    assert [one[0] for one in at[:3]] == pytest.approx([0.1, 0.2, 0.3])
    assert [bool(one) for one in at].count(True) == 6
    assert wire.deliveries(10.0, 1_000)[0] == pytest.approx(10.1)


def test_a_link_has_the_chance_of_its_seed() -> None:
    rule = Rule(loss=0.5)
    runs = [[link_.deliveries(0.0, 1) for _ in range(100)] for link_ in (link(rule), link(rule), link(rule, seed=2))]
    assert runs[0] == runs[1] != runs[2]


def test_both_directions_of_a_connection_are_one_flow_and_others_are_others() -> None:
    there, back = tcp_segment(frame("1:4000", "2:80", SYN)), tcp_segment(frame("2:80", "1:4000", SYN | ACK))
    assert there is not None
    assert back is not None
    assert there.flow == back.flow
    assert (there.is_opening, back.is_opening) == (True, False)
    other = tcp_segment(frame("1:4001", "2:80", ACK))
    assert other is not None
    assert other.flow != there.flow


@pytest.mark.parametrize("options", [0, 3])
def test_ip_options_are_skipped(options: int) -> None:
    segment = tcp_segment(frame("1:4000", "2:80", SYN, options=options))
    assert segment is not None
    assert segment.is_opening


@pytest.mark.parametrize("data", [b"", bytes(60), frame("1:1", "2:2", SYN, protocol=17), frame("1:1", "2:2", SYN)[:40]])
def test_what_is_no_tcp_is_no_segment(data: bytes) -> None:
    assert tcp_segment(data) is None


class TestMiddleBox:
    def test_connections_are_known_from_their_first_segment_on(self) -> None:
        box = MiddleBox(5.0)
        assert not box.passes(frame("1:4000", "2:80", ACK), 0.0)
        assert box.passes(frame("1:4000", "2:80", SYN), 1.0)
        assert box.passes(frame("2:80", "1:4000", SYN | ACK), 1.1)
        assert box.passes(bytes(60), 1.2)

    def test_what_was_silent_for_too_long_is_forgotten_and_may_begin_anew(self) -> None:
        box = MiddleBox(5.0)
        box.passes(frame("1:4000", "2:80", SYN), 0.0)
        assert box.passes(frame("2:80", "1:4000", ACK), 4.9)
        assert not box.passes(frame("1:4000", "2:80", ACK), 10.0)
        assert not box.passes(frame("1:4000", "2:80", ACK), 10.1)
        assert box.passes(frame("1:4000", "2:80", SYN), 11.0)

    def test_a_lost_table_knows_nothing(self) -> None:
        box = MiddleBox(5.0)
        box.passes(frame("1:4000", "2:80", SYN), 0.0)
        assert box.forget() == 1
        assert not box.passes(frame("1:4000", "2:80", ACK), 0.1)


@contextmanager
def machines(count: int) -> Iterator[tuple[Switch, list["Wire"]]]:
    wires = [Wire() for _ in range(count)]
    try:
        yield Switch([wire.tap for wire in wires], 1), wires
    finally:
        for wire in wires:
            wire.close()


class Wire:
    """A machine's interface: a pair of sockets that keep the borders of frames, as a TAP device does."""

    def __init__(self) -> None:
        import socket

        self._machine, self._switch = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._switch.setblocking(False)
        self._machine.setblocking(False)
        self.tap = self._switch.fileno()

    def send(self, data: bytes) -> None:
        self._machine.send(data)

    def received(self) -> list[bytes]:
        frames = []
        while True:
            try:
                frames.append(self._machine.recv(65_536))
            except BlockingIOError:
                return frames

    def close(self) -> None:
        self._machine.close()
        self._switch.close()


def test_the_switch_takes_a_frame_to_its_machine_and_a_broadcast_to_all_others() -> None:
    with machines(3) as (switch, wires):
        wires[0].send(frame("1:1", "3:2", SYN))
        wires[1].send(b"\xff" * 6 + bytes(54))
        switch.take(0)
        switch.take(1)
        assert [len(wire.received()) for wire in wires] == [1, 0, 2]
        assert (switch.counts.forwarded, switch.counts.lost) == (3, 0)


def test_a_rule_is_for_one_direction() -> None:
    with machines(2) as (switch, wires):
        switch.obey({"rules": [(0, 1, DOWN.as_json())]})
        wires[0].send(frame("1:1", "2:2", SYN))
        wires[1].send(frame("2:2", "1:1", SYN))
        switch.take(0)
        switch.take(1)
        assert [len(wire.received()) for wire in wires] == [1, 0]
        assert switch.counts.lost == 1


def test_delayed_frames_wait_and_overtake_each_other_by_their_times() -> None:
    with machines(2) as (switch, wires):
        slow = frame("1:1", "2:2", SYN)
        switch.obey({"rules": [(0, 1, Rule(delay_ms=3_600_000.0).as_json())]})
        wires[0].send(slow)
        switch.take(0)
        wait_s = switch.deliver_due()
        assert wait_s is not None
        assert 3_590.0 < wait_s <= 3_600.0
        assert wires[1].received() == []
        switch.obey({"rules": [(0, 1, WIRE.as_json())]})
        quick = frame("1:3", "2:4", SYN)
        wires[0].send(quick)
        switch.take(0)
        assert wires[1].received() == [quick]


def test_a_middle_box_stands_between_two_machines_and_nobody_else() -> None:
    with machines(3) as (switch, wires):
        switch.obey({"boxes": [(0, 1, 5.0)]})
        for target in ("2:2", "3:2"):
            wires[0].send(frame("1:1", target, ACK))
        switch.take(0)
        assert [len(wire.received()) for wire in wires] == [0, 0, 1]
        assert switch.obey({"forget": [(1, 0)]})["forgotten"] == 0
