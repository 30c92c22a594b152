"""The order in which ended sessions are dealt with: that of the ``ConcurrentHashMap`` in Kafka's heartbeat tracker.

Where several brokers vanish together, who is fenced first decides who leads what is left, and for whom a partition is
lost; so a rehearsal takes them in the order that Kafka does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_FIRST_CAPACITY: Final = 16
_INT: Final = 0xFFFF_FFFF
_LONG: Final = 0xFFFF_FFFF_FFFF_FFFF


class Session(NamedTuple):
    """One incarnation of a broker, by what its heartbeats say."""

    broker_id: int
    broker_epoch: int


class SessionOrder:
    """Sessions in the map's order. Its table never shrinks, and a bucket keeps the order of arrival until it splits."""

    def __init__(self) -> None:
        self._buckets: list[list[Session]] = [[] for _ in range(_FIRST_CAPACITY)]
        self._count = 0

    def __iter__(self) -> Iterator[Session]:
        for bucket in self._buckets:
            yield from bucket

    def add(self, session: Session) -> None:
        """A session that is not in the table."""
        self._bucket(session).append(session)
        self._count += 1
        while self._count * 4 >= len(self._buckets) * 3:
            self._double()

    def remove(self, session: Session) -> None:
        """A session that is in the table."""
        self._bucket(session).remove(session)
        self._count -= 1

    def _bucket(self, session: Session) -> list[Session]:
        return self._buckets[_hash(session) & (len(self._buckets) - 1)]

    def _double(self) -> None:
        capacity = len(self._buckets)
        split = [_split(bucket, capacity) for bucket in self._buckets]
        self._buckets = [low for low, _ in split] + [high for _, high in split]


def _split(bucket: list[Session], bit: int) -> tuple[list[Session], list[Session]]:
    """The sessions that stay and those that go: the last run of one kind keeps its order, all before it come out
    reversed in front.
    """
    run = len(bucket)
    while run > 0 and (run == len(bucket) or bool(_hash(bucket[run - 1]) & bit) == bool(_hash(bucket[-1]) & bit)):
        run -= 1
    halves: tuple[list[Session], list[Session]] = ([], [])
    for session in [*reversed(bucket[:run]), *bucket[run:]]:
        halves[bool(_hash(session) & bit)].append(session)
    return halves


def _hash(session: Session) -> int:
    """Java's hash code of a record of an int and a long, spread as the map does."""
    epoch = session.broker_epoch & _LONG
    code = (31 * session.broker_id + (epoch ^ epoch >> 32)) & _INT
    return code ^ code >> 16
