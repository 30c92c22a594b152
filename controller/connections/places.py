"""Places for connections: how many there may be in all, of one principal, from one address, and of strangers.

An address is what tells one who comes from others: where somebody has all addresses of a network, that (``networks``).

A stranger is a connection on which nobody has shown yet that he may ask. Whoever may shows it with the first request,
milliseconds after connecting. So strangers have a share of the places only, and a short time. A principal has a share,
too, and so have all of them together, but for the cluster's own: nodes, super users, and who runs the process.

Where a place is wanting, those who have most give one up, the one that was silent for longest: strangers by address,
others by principal. However many come and say nothing, and whoever they are: who comes and asks is heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from quorate.metadata_log.errors import Overloaded

#: Of all places, those that strangers may have, one principal, and all principals; an eighth is the cluster's own.
_STRANGERS_SHARE: Final = 0.25
_PRINCIPAL_SHARE: Final = 0.25
_PRINCIPALS_SHARE: Final = 0.625

#: See ``Overloaded``: of all places, and of the shares of them.
LIMIT: Final = "connections_max"

H = TypeVar("H")


class NoPlace(Overloaded):
    """There is no place for the connection on which this was asked: it is closed behind the answer."""


@dataclass(eq=False, slots=True)
class _Party(Generic[H]):
    """The connections of one principal that is not the cluster's own, or of strangers from one address."""

    name: str
    are_strangers: bool
    #: When each was heard of last, the longest silent first.
    silent: dict[H, float] = field(default_factory=dict)
    #: Those that wait for an answer; never strangers, who have a short time whatever they ask.
    waiting: dict[H, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.silent) + len(self.waiting)

    @property
    def first(self) -> H:
        """The one that gives up its place before the others."""
        return next(iter(self.silent or self.waiting))

    def discard(self, holder: H) -> None:
        """It is none of them any more."""
        self.silent.pop(holder, None)
        self.waiting.pop(holder, None)


class Leaving(NamedTuple, Generic[H]):
    """A connection that gives up its place, and has left already."""

    holder: H
    #: The sentence for whoever is at its other end.
    why: str
    was_stranger: bool
    #: Whether something is under way on it: nobody can say then that nothing was changed.
    was_waiting: bool


class Places(Generic[H]):
    """Of one server. ``H``: a connection. Times in seconds of one clock."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self.most = most
        self._most_of_address = most_of_address
        self._strangers_max = max(int(most * _STRANGERS_SHARE), 1)
        self._principal_max = max(int(most * _PRINCIPAL_SHARE), 1)
        self._principals_max = max(int(most * _PRINCIPALS_SHARE), 1)
        #: All of them.
        self._addresses: dict[H, str] = {}
        self._counts: Counter[str] = Counter()
        self._strangers = 0
        #: Those that are not the cluster's own, ...
        self._party_of: dict[H, _Party[H]] = {}
        #: ... by whether they are strangers, and address or principal.
        self._parties: dict[tuple[bool, str], _Party[H]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, holder: H, address: str, now: float) -> Leaving[H] | None:
        """Take a place as a stranger. Returns who gives up his for it.

        Raises:
            Overloaded: there is none.
        """
        if self._counts[address] >= self._most_of_address:
            message = (
                f"{self._most_of_address} connections from {address} are open, and there may be no more: close some"
            )
            raise Overloaded(message, "connections_per_address_max")
        leaving = None
        if self._strangers >= self._strangers_max:
            leaving = self._dismiss(self._largest(are_strangers=True))
        elif len(self._addresses) >= self.most:
            if not self._parties:
                message = f"{self.most} connections are open, and there may be no more: close some"
                raise Overloaded(message, LIMIT)
            leaving = self._dismiss(max(self._parties.values(), key=_rank))
        self._addresses[holder] = address
        self._counts[address] += 1
        self._join(holder, address, are_strangers=True, heard_at=now)
        return leaving

    def prove(self, holder: H, principal: str | None, now: float) -> Leaving[H] | None:
        """It is no stranger any more, but this principal's; None: one of the cluster's own, for good.

        Returns who gives up his place, where principals, or this one, have too many now.

        Raises:
            NoPlace: that is this one itself, for all others of the principal wait for answers. It has left.
        """
        party = self._party_of.get(holder)
        if party is None or (not party.are_strangers and party.name == principal):
            return None
        self._quit(holder)
        if principal is None:
            return None
        known = self._join(holder, principal, are_strangers=False, heard_at=now)
        if len(known) > self._principal_max:
            leaving = self._dismiss(known)
        elif len(self._party_of) - self._strangers > self._principals_max:
            leaving = self._dismiss(self._largest(are_strangers=False))
        else:
            return None
        if leaving.holder is holder:
            raise NoPlace(leaving.why, LIMIT)
        return leaving

    def owner(self, holder: H) -> str | None:
        """The principal whose it is, or the address of strangers; None: it is the cluster's own."""
        party = self._party_of.get(holder)
        return None if party is None else party.name

    def begin(self, holder: H) -> None:
        """It asks for something, and waits for the answer."""
        party = self._party_of.get(holder)
        if party is not None and not party.are_strangers:
            party.silent.pop(holder, None)
            party.waiting[holder] = None

    def end(self, holder: H, now: float) -> None:
        """It has its answer, and is now the last to be silent for long."""
        party = self._party_of.get(holder)
        if party is not None:
            party.discard(holder)
            party.silent[holder] = now

    def pass_on(self, holder: H, successor: H) -> None:
        """Another object stands for the connection from now on."""
        address = self._addresses.pop(holder, None)
        if address is None:
            return  # it is being closed
        self._addresses[successor] = address
        party = self._party_of.pop(holder, None)
        if party is not None:
            heard_at = party.silent.pop(holder)  # nothing is under way on what is passed on
            party.silent[successor] = heard_at
            self._party_of[successor] = party

    def leave(self, holder: H) -> None:
        """It has ended, or is about to."""
        if holder in self._party_of:
            self._quit(holder)
        address = self._addresses.pop(holder, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def silent_strangers(self, since: float) -> Iterator[H]:
        """Strangers not heard of after then."""
        for party in [party for party in self._parties.values() if party.are_strangers]:
            for holder, heard_at in list(party.silent.items()):
                if heard_at > since:
                    break
                yield holder

    def _join(self, holder: H, name: str, *, are_strangers: bool, heard_at: float) -> _Party[H]:
        party = self._parties.setdefault((are_strangers, name), _Party(name, are_strangers))
        party.silent[holder] = heard_at
        self._party_of[holder] = party
        self._strangers += are_strangers
        return party

    def _quit(self, holder: H) -> None:
        party = self._party_of.pop(holder)
        party.discard(holder)
        self._strangers -= party.are_strangers
        if not len(party):
            del self._parties[party.are_strangers, party.name]

    def _largest(self, *, are_strangers: bool) -> _Party[H]:
        """One look at all: there are no more than principals, and addresses of strangers, that are connected."""
        return max((one for one in self._parties.values() if one.are_strangers is are_strangers), key=_rank)

    def _dismiss(self, party: _Party[H]) -> Leaving[H]:
        why = "nothing was asked here, and others want the place: ask at once"
        if not party.are_strangers:
            why = f"{len(party)} of {self.most} connections are {party.name}'s, and others want the place: open fewer"
        leaving = Leaving(party.first, why, party.are_strangers, was_waiting=not party.silent)
        self.leave(leaving.holder)
        return leaving


def _rank(party: _Party[H]) -> tuple[int, float]:
    """The highest gives up a place: who has most, and of those who was silent for longest."""
    return len(party), -next(iter(party.silent.values()), float("inf"))
