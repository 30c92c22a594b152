"""What is told to a connection that gives up its place, by what is under way on it."""

from __future__ import annotations

from typing import Any

from quorate.controller.connections.gate import Gate, GateLimits
from quorate.controller.connections.http_counts import HttpCounts
from quorate.metadata_log.errors import ApiError


class Server:
    """``gate.Server`` that notes what it is told."""

    def __init__(self) -> None:
        self.counts = HttpCounts()
        self.displaced: list[str] = []

    def admit(self, address: str, now_ms: float) -> None:
        pass

    def last_answer(self, error: ApiError) -> bytes:
        return str(error).encode()

    def note_refused(self) -> None:
        pass

    def note_displaced(self, whose: str) -> None:
        self.displaced.append(whose)


class Connection:
    """Its own transport."""

    certificate = None

    def __init__(self) -> None:
        self.transport: Any = self
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True


def entered(gate: Gate, principal: str, count: int, *, waits: bool) -> list[Connection]:
    found = []
    for _ in range(count):
        connection = Connection()
        assert gate.enter(connection, "10.0.0.1")
        gate.prove(connection, principal)
        if waits:
            gate.places.begin(connection)
        found.append(connection)
    return found


async def test_who_waits_for_an_answer_is_not_told_that_nothing_was_changed() -> None:
    """Of 16 places one principal has four, and all have ten."""
    server = Server()
    gate = Gate(server, GateLimits(16, 16, 10.0, 10.0))
    waiting = entered(gate, "User:ana", 4, waits=True)
    others = entered(gate, "User:bo", 4, waits=True) + entered(gate, "User:cy", 3, waits=False)
    assert server.displaced == ["principal"]
    assert [(one.is_closed, one.written) for one in waiting + others if one.is_closed] == [(True, b"")]
    assert waiting[0].is_closed
    assert server.counts.refused == {"connections_max": 1}


async def test_who_asks_for_nothing_is_told_why_he_is_sent_away() -> None:
    server = Server()
    gate = Gate(server, GateLimits(16, 16, 10.0, 10.0))
    silent = entered(gate, "User:ana", 4, waits=False)
    entered(gate, "User:bo", 3, waits=True)
    entered(gate, "User:cy", 4, waits=True)
    assert server.displaced == ["principal"]
    assert (silent[0].is_closed, b"open fewer" in silent[0].written) == (True, True)
