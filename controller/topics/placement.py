"""Places the replicas of new partitions: Kafka's ``StripedReplicaPlacer``.

Goals: one replica a rack as far as there are racks; leaders spread evenly; unfenced brokers before fenced ones,
and never a fenced leader. Brokers stand in lists by rack and by whether they are fenced. Each partition is one
*round*: it takes brokers from the lists, starting one rack further than the round before, and every list that is
used in a round starts one broker further than the last time. After as many rounds as there are unfenced brokers
everything is shuffled, so that the same brokers do not always stand together.

Given the same random numbers the outcome is Kafka's, broker for broker; so the order in which they are drawn
matters, and is said below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.random_source import RandomSource, shuffle
from quorate.controller.topics.placement_regular import RackLists, RegularDraw, draw, work_out
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.checkpoints.hash_map_order import in_hash_map_order

#: Partitions of one topic up to which rounds take less time than arithmetic, also where many topics share the latter.
_BY_ROUNDS_MAX: Final = 8

_NOT_YET: Final = np.empty((0, 0), np.int32)


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may be given replicas."""

    broker_id: int
    #: None = no rack, which counts as one rack.
    rack: str | None
    is_fenced: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of one topic's partitions: chosen, though perhaps not worked out yet."""

    partition_count: int
    replication_factor: int
    choice: NDArray[np.int32] | RegularDraw


class ReplicaPlacer:
    """Places the partitions of one topic after another among the brokers of one moment."""

    def __init__(self, racks: Racks, random: RandomSource) -> None:
        self._racks = racks
        self._random = random

    def choose(self, partition_count: int, replication_factor: int) -> Placement:
        """Draw the random numbers for one topic.

        Raises:
            ApiError: INVALID_REPLICATION_FACTOR if no such placement exists, also for no partitions at all.
        """
        racks, random = self._racks, self._random
        offsets, first_rack = racks.start_anywhere(random)
        racks.check(replication_factor)
        choice: NDArray[np.int32] | RegularDraw
        is_many = partition_count > _BY_ROUNDS_MAX
        if is_many and racks.regular is not None and racks.regular.allow(replication_factor):
            starts = [unfenced for unfenced, _ in offsets]
            choice = draw(racks.regular, partition_count, replication_factor, first_rack, starts, random)
        else:
            rounds = _Rounds(racks, offsets, first_rack, random)
            flat: list[int] = []
            for _ in range(partition_count):
                rounds.place(replication_factor, flat)
            choice = np.array(flat, np.int32).reshape(partition_count, replication_factor)
        return Placement(partition_count, replication_factor, choice)

    def place(self, partition_count: int, replication_factor: int) -> NDArray[np.int32]:
        """int32[partition_count, replication_factor]: broker ids, the preferred leader first; raises as ``choose``."""
        return work_out_all([self.choose(partition_count, replication_factor)])[0]


def work_out_all(placements: Sequence[Placement]) -> list[NDArray[np.int32]]:
    """int32[partitions, factor] of each placement of one placer; those alike in both are worked out together."""
    alike: dict[tuple[int, int], list[int]] = {}
    placed: list[NDArray[np.int32]] = []
    for number, placement in enumerate(placements):
        if isinstance(placement.choice, RegularDraw):
            alike.setdefault((placement.partition_count, placement.replication_factor), []).append(number)
            placed.append(_NOT_YET)
        else:
            placed.append(placement.choice)
    for numbers in alike.values():
        draws = [choice for number in numbers if isinstance(choice := placements[number].choice, RegularDraw)]
        for number, replicas in zip(numbers, work_out(draws), strict=True):
            placed[number] = replicas
    return placed


class Racks:
    """The brokers by rack and by whether they are fenced, as they are before anything is drawn."""

    def __init__(self, brokers: Iterable[UsableBroker]) -> None:
        racks: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in brokers:
            racks.setdefault(broker.rack, ([], []))[broker.is_fenced].append(broker.broker_id)
        #: In the order in which rounds walk them, until shuffled: no rack first, then by name.
        names = sorted(racks, key=lambda name: (name is not None, name or ""))
        #: (unfenced, fenced) of each rack in that order, ascending.
        self.lists = [(sorted(racks[name][0]), sorted(racks[name][1])) for name in names]
        #: The order in which racks draw random numbers.
        self.drawing = [names.index(name) for name in in_hash_map_order(racks, lambda rack: rack)]
        self.unfenced_count = sum(len(unfenced) for unfenced, _ in self.lists)
        self.broker_count = sum(len(unfenced) + len(fenced) for unfenced, fenced in self.lists)
        #: None where some brokers are fenced, or there are none.
        self.regular: RackLists | None = None
        if self.lists and self.unfenced_count == self.broker_count:
            self.regular = RackLists.of([unfenced for unfenced, _ in self.lists], self.drawing)

    def start_anywhere(self, random: RandomSource) -> tuple[list[tuple[int, int]], int]:
        """The start of each (unfenced, fenced) list, drawn for the fenced one first, and the rack to start with."""
        offsets = [(0, 0)] * len(self.lists)
        for rack in self.drawing:
            unfenced, fenced = self.lists[rack]
            fenced_offset = random.next_int(len(fenced)) if fenced else 0
            offsets[rack] = (random.next_int(len(unfenced)) if unfenced else 0, fenced_offset)
        return offsets, random.next_int(len(self.lists)) if self.lists else 0

    def check(self, replication_factor: int) -> None:
        """Refuse what cannot be placed.

        Raises:
            ApiError: INVALID_REPLICATION_FACTOR, and the reason.
        """
        if replication_factor <= 0:
            problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        elif self.unfenced_count == 0:
            problem = "All brokers are currently fenced, or have all their log directories cordoned."
        elif replication_factor > self.broker_count:
            problem = (
                f"The target replication factor of {replication_factor} cannot be reached because only "
                f"{self.broker_count} broker(s) are registered or some brokers have all their log directories "
                "cordoned."
            )
        else:
            return
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)


class _BrokerList:
    """Brokers of one rack that are all fenced or all unfenced, handed out in turn."""

    __slots__ = ("brokers", "epoch", "index", "offset")

    def __init__(self, brokers: list[int], offset: int) -> None:
        self.brokers = brokers.copy()
        #: Round in which the list was used last; a new round starts over, one broker further.
        self.epoch = 0
        self.index = 0
        self.offset = offset

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


class _Rounds:
    """The state of the rounds of one topic."""

    def __init__(self, racks: Racks, offsets: list[tuple[int, int]], first_rack: int, random: RandomSource) -> None:
        self._random = random
        self._unfenced_count = racks.unfenced_count
        self._walk = [
            (_BrokerList(unfenced, starts[0]), _BrokerList(fenced, starts[1]))
            for (unfenced, fenced), starts in zip(racks.lists, offsets, strict=True)
        ]
        self._offset = first_rack
        self._epoch = 0
        #: What a shuffle shuffles, in the order in which random numbers are drawn for it.
        self._shuffled: list[list[Any]] = [self._walk]
        for unfenced_list, fenced_list in [self._walk[rack] for rack in racks.drawing]:
            self._shuffled += [fenced_list.brokers, unfenced_list.brokers]

    def place(self, replication_factor: int, flat: list[int]) -> None:
        """Append the replicas of one more partition."""
        # A single unfenced broker is never shuffled: it is the end of a round each time.
        if self._epoch == self._unfenced_count > 1:
            for items in self._shuffled:
                shuffle(items, self._random)
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
