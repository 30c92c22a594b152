"""Who gives up a place for whom: by names of connections, and a clock that only the test moves."""

from __future__ import annotations

import pytest

from quorate.controller.connections.places import NoPlace, Places
from quorate.metadata_log.errors import Overloaded

OWN = None
EVE, BO = "User:eve", "User:bo"


class Server:
    """Connections by name, each heard of a second after the one before. 16 places: 4 strangers, 4 of one, 10 of all."""

    def __init__(self, most: int = 16, most_of_address: int = 1_000) -> None:
        self.places: Places[str] = Places(most, most_of_address)
        self.now = 0.0
        #: Who gave up a place, in order.
        self.left: list[str] = []
        self.why = ""

    def enter(self, name: str, address: str = "10.0.0.1") -> None:
        self.now += 1
        self._note(self.places.enter(name, address, self.now))

    def prove(self, name: str, owner: str | None) -> None:
        self.now += 1
        self._note(self.places.prove(name, owner, self.now))

    def come(self, owner: str | None, *names: str) -> None:
        for name in names:
            self.enter(name)
            self.prove(name, owner)

    def _note(self, leaving: object) -> None:
        if leaving is not None:
            self.left.append(leaving.holder)  # type: ignore[attr-defined]
            self.why = leaving.why  # type: ignore[attr-defined]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_silent_principal_has_a_share_and_the_longest_silent_goes_beyond_it() -> None:
    server = Server()
    server.come(EVE, *names("e", 6))
    assert server.left == ["e0", "e1"]
    assert server.why == "5 of 16 connections are User:eve's, and others want the place: open fewer"


def test_principal_that_is_heard_of_is_not_the_longest_silent() -> None:
    server = Server()
    server.come(EVE, *names("e", 4))
    server.places.begin("e0")
    server.come(EVE, "e4")
    server.places.end("e0", 100.0)
    server.come(EVE, "e5", "e6", "e7")
    assert server.left == ["e1", "e2", "e3", "e4"]


def test_principal_whose_connections_all_wait_for_answers_gets_no_other() -> None:
    server = Server()
    server.come(EVE, *names("e", 4))
    for name in names("e", 4):
        server.places.begin(name)
    server.enter("late")
    with pytest.raises(NoPlace, match="User:eve's"):
        server.prove("late", EVE)
    server.come(BO, *names("b", 4))
    assert server.left == []


def test_principals_together_leave_an_eighth_and_the_largest_of_them_gives_way() -> None:
    server = Server()
    for principal, count in (("a", 4), ("b", 3), ("c", 3), ("d", 2)):
        server.come(f"User:{principal}", *names(principal, count))
    assert server.left == ["a0", "a1"]  # the second when three have 3, of which a was silent for longest
    server.come(OWN, *names("n", 6))
    assert server.left == ["a0", "a1"]


def test_own_connections_are_never_displaced_and_take_what_others_have() -> None:
    server = Server()
    for principal in "abc":
        server.come(f"User:{principal}", *names(principal, 4))
    server.left.clear()
    server.come(OWN, *names("n", 16))
    assert sorted(one[0] for one in server.left) == ["a"] * 3 + ["b"] * 3 + ["c"] * 4
    with pytest.raises(Overloaded, match="16 connections are open"):
        server.enter("one more")


def test_own_principal_has_no_share_and_what_is_own_stays_so() -> None:
    server = Server()
    server.come(OWN, *names("n", 12))
    server.prove("n0", EVE)
    assert server.left == []
    server.come(EVE, *names("e", 4))
    assert server.left == []


def test_strangers_go_by_address_the_one_with_most_first() -> None:
    server = Server()
    server.enter("quiet", "10.0.0.9")
    for name in names("s", 5):
        server.enter(name)
    assert server.left == ["s0", "s1"]
    assert server.why == "nothing was asked here, and others want the place: ask at once"


def test_last_place_is_taken_from_who_has_most_of_all() -> None:
    server = Server()
    server.enter("stranger")
    server.come(EVE, *names("e", 3))
    server.come(OWN, *names("n", 12))
    server.enter("late")
    assert server.left == ["e0"]


def test_connection_that_waits_is_told_from_one_that_is_silent() -> None:
    server = Server()
    server.come(EVE, "e0")
    server.places.begin("e0")
    server.come(OWN, *names("n", 15))
    leaving = server.places.enter("late", "10.0.0.2", server.now)
    assert leaving is not None
    assert (leaving.holder, leaving.was_waiting, leaving.was_stranger) == ("e0", True, False)


def test_connection_may_become_another_principals() -> None:
    server = Server()
    server.come(EVE, *names("e", 4))
    server.prove("e3", BO)
    server.come(EVE, "e4")
    assert server.left == []
    server.prove("e4", OWN)
    server.come(EVE, "e5")
    assert server.left == []


def test_successor_has_the_place_and_the_silence_of_who_was_before() -> None:
    server = Server()
    server.enter("handshake")
    server.places.pass_on("handshake", "s0")
    assert list(server.places.silent_strangers(1.0)) == ["s0"]
    server.places.leave("handshake")
    server.prove("s0", EVE)
    assert list(server.places.silent_strangers(99.0)) == []
    server.places.leave("s0")
    server.places.pass_on("s0", "gone")
    assert server.places.prove("gone", EVE, 1.0) is None


def test_addresses_are_bounded_and_places_that_were_left_are_free() -> None:
    server = Server(most_of_address=2)
    server.enter("a")
    server.enter("b")
    with pytest.raises(Overloaded, match=r"2 connections from 10\.0\.0\.1 are open"):
        server.enter("c")
    server.places.leave("a")
    server.places.leave("a")
    server.enter("c")
    assert server.left == []
