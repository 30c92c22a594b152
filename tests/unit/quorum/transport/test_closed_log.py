"""Log lines of closed connections: the first at once, the others as a count."""

from __future__ import annotations

import pytest

from quorate.quorum.transport.closed_log import KINDS_MAX, QUIET_S, ClosedLog


def test_first_line_comes_at_once_and_what_follows_as_a_count(caplog: pytest.LogCaptureFixture) -> None:
    log = ClosedLog()
    for number in range(1_000):
        log.closed("node 2", "wrong", f"garbage {number}", number * QUIET_S / 2_000)
        log.look(number * QUIET_S / 2_000)
    assert caplog.messages == ["connection to node 2 closed: garbage 0"]
    log.look(QUIET_S)
    assert caplog.messages[1:] == ["connection to node 2 closed 999 times more, the last: garbage 999"]
    # Nothing more came: the next one is told at once again.
    log.look(2 * QUIET_S)
    log.closed("node 2", "wrong", "again", 2 * QUIET_S)
    assert caplog.messages[2:] == ["connection to node 2 closed: again"]


def test_each_peer_and_each_reason_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    log = ClosedLog()
    for peer in ("node 1", "node 2"):
        for reason in ("silent", "wrong"):
            log.closed(peer, reason, reason, 0.0)
            log.closed(peer, reason, reason, 1.0)
    assert len(caplog.messages) == 4


def test_peers_from_ever_new_addresses_share_a_line(caplog: pytest.LogCaptureFixture) -> None:
    log = ClosedLog()
    for number in range(5_000):
        log.closed(f"an unknown peer at 10.0.{number // 256}.{number % 256}", "wrong", "no hello", 0.0)
    assert len(caplog.messages) == KINDS_MAX + 1
    assert caplog.messages[-1] == "connection to other peers closed: no hello"
    log.look(QUIET_S)
    assert caplog.messages[-1].startswith(f"connection to other peers closed {5_000 - KINDS_MAX - 1} times more")


def test_peer_that_goes_on_for_long_is_told_of_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    log = ClosedLog()
    for tenth in range(int(600 * QUIET_S)):
        log.closed("an unknown peer", "wrong", "no hello", tenth / 10)
        log.look(tenth / 10)
    assert 55 <= len(caplog.messages) <= 61
