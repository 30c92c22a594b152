"""Room for bodies: shares of principals, of all of them, and what is the cluster's own."""

from __future__ import annotations

import pytest

from quorate.controller.connections.bodies import Bodies
from quorate.metadata_log.errors import Overloaded

EVE, BO, CARL = "User:eve", "User:bo", "User:carl"


class Room:
    """800 bytes: 200 of one principal, 500 of all."""

    def __init__(self, most: int = 800, largest: int = 100) -> None:
        self.refused = 0
        self.bodies = Bodies(most, largest, self._note)

    def _note(self) -> None:
        self.refused += 1


def test_principal_has_a_share_and_what_is_given_back_is_free() -> None:
    room = Room()
    room.bodies.take(EVE, 200)
    with pytest.raises(Overloaded, match="bodies of User:eve in flight would have 201 bytes, 200 is the most"):
        room.bodies.take(EVE, 1)
    room.bodies.take(BO, 1)
    room.bodies.give_back(EVE, 1)
    room.bodies.take(EVE, 1)
    assert (room.bodies.taken, room.refused) == (201, 1)


def test_principals_together_leave_room_for_the_clusters_own_which_has_all_that_is_left() -> None:
    room = Room()
    for principal, size in ((EVE, 200), (BO, 200), (CARL, 100)):
        room.bodies.take(principal, size)
    with pytest.raises(Overloaded, match="bodies of principals in flight would have 501 bytes, 500 is the most"):
        room.bodies.take(CARL, 1)
    room.bodies.take(None, 300)
    with pytest.raises(Overloaded, match="bodies of clients in flight would have 801 bytes, 800 is the most"):
        room.bodies.take(None, 1)
    assert (room.bodies.taken, room.refused) == (800, 2)


def test_largest_body_fits_where_there_is_no_other() -> None:
    room = Room(most=100, largest=1_000)
    room.bodies.take(EVE, 1_000)
    room.bodies.give_back(EVE, 1_000)
    room.bodies.take(None, 1_000)
    assert room.refused == 0


def test_held_body_gives_back_what_it_has_once_and_whatever_comes_of_it() -> None:
    room = Room()
    with room.bodies.held(EVE) as held:
        held.grow(100)
        with pytest.raises(Overloaded):
            held.grow(101)
        held.grow(50)
        assert room.bodies.taken == 150
    assert room.bodies.taken == 0
    held.release()
    assert room.bodies.taken == 0
