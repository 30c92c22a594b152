"""Where the replicas of new partitions go: Kafka's ``StripedReplicaPlacer``.

Goals: one replica a rack as far as there are racks; leaders spread evenly; unfenced brokers before fenced ones,
and never a fenced leader. Brokers stand in lists by rack and by whether they are fenced. Each partition is one
*round*: it takes brokers from the lists, starting one rack further than the round before, and every list that is
used in a round starts one broker further than the last time. After as many rounds as there are unfenced brokers
everything is shuffled, so that the same brokers do not always stand together.

Given the same random numbers the outcome is Kafka's, broker for broker; so the order in which they are drawn
matters, and is said below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from metadata_log.errors import ApiError, ErrorCode

_MAP_CAPACITY: Final = 16
_MAP_LOAD: Final = 0.75


class RandomSource(Protocol):
    """Where random numbers come from; the shell supplies it, so that placement is reproducible."""

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound`` (exclusive), all equally likely."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may be given replicas."""

    broker_id: int
    #: None = no rack, which counts as one rack.
    rack: str | None
    is_fenced: bool


class ReplicaPlacer:
    """Places the partitions of one topic after another among the brokers of one moment."""

    def __init__(self, brokers: Iterable[UsableBroker], random: RandomSource) -> None:
        self._brokers = tuple(brokers)
        self._random = random

    def place(self, partition_count: int, replication_factor: int) -> NDArray[np.int32]:
        """int32[partition_count, replication_factor]: broker ids, the preferred leader first.

        Raises:
            ApiError: INVALID_REPLICATION_FACTOR if no such placement exists, also for no partitions at all.
        """
        racks = _Racks(self._brokers, self._random)
        racks.check(replication_factor)
        if racks.is_regular(replication_factor):
            return racks.place_regular(partition_count, replication_factor)
        flat: list[int] = []
        for _ in range(partition_count):
            racks.place_round(replication_factor, flat)
        return np.array(flat, np.int32).reshape(partition_count, replication_factor)


class _BrokerList:
    """Brokers of one rack that are all fenced or all unfenced, handed out in turn."""

    __slots__ = ("brokers", "epoch", "index", "offset")

    def __init__(self) -> None:
        self.brokers: list[int] = []
        #: Round in which the list was used last; a new round starts over, one broker further.
        self.epoch = 0
        self.index = 0
        self.offset = 0

    def start_anywhere(self, random: RandomSource) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = random.next_int(len(self.brokers))

    def next(self, epoch: int) -> int:
        """The next broker of this round, -1 when all have been used in it."""
        brokers = self.brokers
        size = len(brokers)
        if size == 0:
            return -1
        if self.epoch != epoch:
            self.epoch = epoch
            self.index = 0
            self.offset = (self.offset + 1) % size
        index = self.index
        if index >= size:
            return -1
        self.index = index + 1
        return brokers[(self.offset + index) % size]


class _Racks:
    """All lists, and where the rounds stand."""

    def __init__(self, brokers: tuple[UsableBroker, ...], random: RandomSource) -> None:
        racks: dict[str | None, tuple[_BrokerList, _BrokerList]] = {}
        for broker in brokers:
            lists = racks.setdefault(broker.rack, (_BrokerList(), _BrokerList()))
            lists[broker.is_fenced].brokers.append(broker.broker_id)
        self._random = random
        self._broker_count = len(brokers)
        self._unfenced_count = sum(not broker.is_fenced for broker in brokers)
        #: (unfenced, fenced) of each rack, in the order in which racks draw random numbers: fenced list first.
        self._drawing = [racks[name] for name in _java_map_order(racks)]
        for unfenced, fenced in self._drawing:
            fenced.start_anywhere(random)
            unfenced.start_anywhere(random)
        #: The same in the order in which rounds walk them: no rack first, then by name, until shuffled.
        self._walk = [racks[name] for name in sorted(racks, key=lambda name: (name is not None, name or ""))]
        self._offset = random.next_int(len(self._walk)) if self._walk else 0
        self._epoch = 0
        #: What a shuffle shuffles, in the order in which random numbers are drawn for it.
        self._shuffled: list[list[Any]] = [self._walk]
        self._shuffled += [held.brokers for unfenced, fenced in self._drawing for held in (fenced, unfenced)]

    def check(self, replication_factor: int) -> None:
        """Refuse what cannot be placed."""
        if replication_factor <= 0:
            problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        elif self._unfenced_count == 0:
            problem = "All brokers are currently fenced, or have all their log directories cordoned."
        elif replication_factor > self._broker_count:
            problem = (
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{self._broker_count} broker(s) are registered or some brokers have all their log directories "
                "cordoned."
            )
        else:
            return
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)

    def is_regular(self, replication_factor: int) -> bool:
        """Whether replica j of every round is broker j // racks of the j-th rack from where the round starts.

        So it is when no list runs out, none holds fenced brokers, and none is met again in the same epoch without
        having been used in between: each is used in every round, or at least once in either half of the epochs.
        """
        rack_count = len(self._walk)
        if self._unfenced_count < self._broker_count:
            return False
        if replication_factor < rack_count and self._unfenced_count < 2 * rack_count:
            return False
        laps = -(-replication_factor // rack_count)
        return all(len(unfenced.brokers) >= laps for unfenced, _ in self._walk)

    def place_regular(self, partition_count: int, replication_factor: int) -> NDArray[np.int32]:
        """All rounds at once; the same placement, and the same random numbers, as round by round."""
        lists = [unfenced for unfenced, _ in self._walk]
        rack_count = len(lists)
        number_of = {id(held): number for number, held in enumerate(lists)}
        sizes = np.array([len(held.brokers) for held in lists])
        rounds_per_epoch = self._unfenced_count if self._unfenced_count > 1 else max(partition_count, 1)
        walk_numbers: list[int] = []
        broker_ids: list[int] = []
        for first_round in range(0, partition_count, rounds_per_epoch):
            if first_round:
                self._shuffle_all()
            walk_numbers += [number_of[id(unfenced)] for unfenced, _ in self._walk]
            for held in lists:
                broker_ids += held.brokers
        rounds = np.arange(partition_count)[:, None]
        epochs = rounds // rounds_per_epoch
        replicas = np.arange(replication_factor)
        walk_at = (self._offset + rounds + replicas) % rack_count
        racks = np.array(walk_numbers, np.intp)[epochs * rack_count + walk_at]
        uses = np.zeros((partition_count, rack_count), np.intp)
        uses[rounds, racks] = 1
        # The first round of all uses the lists where they stand; each later use starts one broker further.
        advances = (uses.cumsum(axis=0) - uses[:1])[rounds, racks]
        offsets = np.array([held.offset for held in lists])
        at = (offsets[racks] + advances + replicas // rack_count) % sizes[racks]
        starts = sizes.cumsum() - sizes
        placed: NDArray[np.int32]
        placed = np.array(broker_ids, np.int32)[epochs * self._unfenced_count + starts[racks] + at]
        return placed

    def place_round(self, replication_factor: int, flat: list[int]) -> None:
        """Append the replicas of one more partition."""
        # A single unfenced broker is never shuffled: it is the end of a round each time.
        if self._epoch == self._unfenced_count > 1:
            self._shuffle_all()
            self._epoch = 0
        walk, epoch = self._walk, self._epoch
        rack_count = len(walk)
        if self._offset == rack_count:
            self._offset = 0
        at = leader_rack = self._offset
        while (broker := walk[leader_rack][0].next(epoch)) < 0:
            leader_rack = (leader_rack + 1) % rack_count
        flat.append(broker)
        for _ in range(1, replication_factor):
            broker = -1
            while broker < 0:
                if at == leader_rack:
                    leader_rack = -1  # The leader's rack is passed over once.
                else:
                    unfenced, fenced = walk[at]
                    broker = unfenced.next(epoch)
                    if broker < 0:
                        broker = fenced.next(epoch)
                at += 1
                if at == rack_count:
                    at = 0
            flat.append(broker)
        self._epoch += 1
        self._offset += 1

    def _shuffle_all(self) -> None:
        # Java's ``Collections.shuffle``: from the back, each with one at or before it.
        next_int = self._random.next_int
        for items in self._shuffled:
            for last in range(len(items) - 1, 0, -1):
                other = next_int(last + 1)
                items[last], items[other] = items[other], items[last]


def _java_map_order(names: Iterable[str | None]) -> list[str | None]:
    """The order in which Java's ``HashMap`` of optional strings gives its keys: by bucket, then as they came."""
    keys = list(names)
    capacity = _MAP_CAPACITY
    while len(keys) > capacity * _MAP_LOAD:
        capacity *= 2
    return sorted(keys, key=lambda name: _java_hash(name) & (capacity - 1))


def _java_hash(name: str | None) -> int:
    value = 0
    data = (name or "").encode("utf-16-be")
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8) + data[at + 1]) & 0xFFFFFFFF
    return value ^ (value >> 16)
