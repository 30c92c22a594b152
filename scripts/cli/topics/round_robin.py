"""Places the replicas of topics that are spread again: Kafka's ``AdminUtils.assignReplicasToBrokers``, without chance.

Brokers are arranged so that racks take turns. The first replica walks along them, partition by partition, and every
further one goes to the next broker whose rack has none yet. After each full turn the distance between the first and
the others grows by one, so that the same brokers do not always stand together. A broker without a rack is a rack of its
own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from quorate.metadata_log.errors import QuorateError


class CannotSpread(QuorateError):
    """There are fewer brokers than replicas, or only some of them have racks."""


class RoundRobin:
    """Spreads one topic after another: each starts where the one before ended, so that leaders are spread evenly."""

    def __init__(self, racks: Mapping[int, str | None]) -> None:
        """``racks``: of each broker, by id.

        Raises:
            CannotSpread: some of them have none.
        """
        without = sorted(broker for broker, rack in racks.items() if rack is None)
        if 0 < len(without) < len(racks):
            raise CannotSpread(f"brokers {without} have no rack, and others have: say --ignore-racks, or give them one")
        self._racks: dict[int, str | int] = {
            broker: broker if rack is None else rack for broker, rack in sorted(racks.items())
        }
        self._rack_count = len(set(self._racks.values()))
        self._brokers = self._alternating()
        self._start = 0

    def _alternating(self) -> Sequence[int]:
        """The brokers, one of each rack in turn; racks by name, brokers of a rack by id."""
        by_rack: dict[str | int, list[int]] = {}
        for broker, rack in self._racks.items():
            by_rack.setdefault(rack, []).append(broker)
        rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack, key=lambda rack: (str(type(rack)), rack))))
        return [broker for one_of_each in rounds for broker in one_of_each if broker is not None]

    def spread(self, partition_count: int, replication_factor: int) -> list[list[int]]:
        """Replicas of each partition of the next topic, the preferred leader first.

        Raises:
            CannotSpread: there are fewer brokers than replicas.
        """
        if replication_factor > len(self._brokers):
            raise CannotSpread(f"{replication_factor} replicas need as many brokers: there are {len(self._brokers)}")
        placed = [self._place(number, replication_factor) for number in range(partition_count)]
        self._start = (self._start + partition_count) % len(self._brokers)
        return placed

    def _place(self, number: int, replication_factor: int) -> list[int]:
        brokers = self._brokers
        count = len(brokers)
        first = (number + self._start) % count
        replicas, racks = [brokers[first]], {self._racks[brokers[first]]}
        step = number // count * self._rack_count
        while len(replicas) < replication_factor:
            broker = brokers[(first + 1 + step % (count - 1)) % count]
            step += 1
            is_new_rack = self._racks[broker] not in racks or len(racks) == self._rack_count
            if is_new_rack and broker not in replicas:
                replicas.append(broker)
                racks.add(self._racks[broker])
        return replicas
