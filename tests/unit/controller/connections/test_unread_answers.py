"""Answers that nobody takes: too many bytes of one principal, or of all, and too few taken in their time."""

from __future__ import annotations

import asyncio
from typing import cast

from quorate.controller.connections.unread_answers import (
    BYTES_MAX,
    BYTES_OF_ONE_MAX,
    TAKE_BYTES,
    TAKE_S,
    UnreadAnswers,
)

MEGABYTE = 1024 * 1024


class Reader:
    """A connection with so many bytes that were not taken."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.transport = cast(asyncio.Transport, self)

    def get_write_buffer_size(self) -> int:
        return self.left


def begun(unread: UnreadAnswers[Reader], owner: str | None, left: int, now: float = 0.0) -> tuple[Reader, bool]:
    reader = Reader(left)
    return reader, unread.begin(reader, owner, now)


def test_answers_of_one_principal_are_bounded_and_those_of_the_cluster_are_not() -> None:
    unread: UnreadAnswers[Reader] = UnreadAnswers()
    first, is_room = begun(unread, "User:ana", BYTES_OF_ONE_MAX - MEGABYTE)
    assert is_room
    assert begun(unread, "User:ana", MEGABYTE)[1]
    beyond, is_room = begun(unread, "User:ana", 1)
    assert not is_room
    assert begun(unread, "User:bob", MEGABYTE)[1]
    assert begun(unread, None, 10 * BYTES_MAX)[1]
    assert unread.end(beyond)
    assert unread.end(first)
    assert not unread.end(first)
    assert begun(unread, "User:ana", BYTES_OF_ONE_MAX - MEGABYTE)[1]


def test_answers_of_all_principals_are_bounded_together() -> None:
    unread: UnreadAnswers[Reader] = UnreadAnswers()
    count = BYTES_MAX // BYTES_OF_ONE_MAX
    held = [begun(unread, f"User:{number}", BYTES_OF_ONE_MAX) for number in range(count)]
    assert all(is_room for _, is_room in held)
    beyond, is_room = begun(unread, "User:ana", 1)
    assert not is_room
    unread.end(beyond)
    unread.end(held[0][0])
    assert begun(unread, "User:ana", 1)[1]


def test_who_takes_too_little_in_his_time_is_slow_and_who_takes_enough_has_as_much_again() -> None:
    unread: UnreadAnswers[Reader] = UnreadAnswers()
    readers = {
        "nothing": begun(unread, "User:ana", MEGABYTE)[0],
        "a drop": begun(unread, None, MEGABYTE)[0],
        "enough": begun(unread, "User:ana", MEGABYTE)[0],
        "late": begun(unread, "User:ana", MEGABYTE, now=1.0)[0],
    }
    readers["a drop"].left -= TAKE_BYTES - 1
    readers["enough"].left -= TAKE_BYTES
    assert unread.slow(TAKE_S - 0.1) == []
    assert unread.slow(TAKE_S) == [readers["nothing"], readers["a drop"]]
    for name in ("nothing", "a drop"):
        unread.end(readers[name])
    assert unread.slow(TAKE_S + 1.0) == [readers["late"]]
    unread.end(readers["late"])
    assert unread.slow(2 * TAKE_S - 0.1) == []
    assert unread.slow(2 * TAKE_S) == [readers["enough"]]
