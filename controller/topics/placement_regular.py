"""Regular placements: all rounds of all topics of a request at once, as columns.

A placement is regular when replica j of every round is broker j // racks of the j-th rack from where the round starts.
Then only the random numbers must be drawn one by one; what they mean is arithmetic. See
``controller.topics.placement``, whose rounds say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.random_source import RandomSource


@dataclass(frozen=True, slots=True, eq=False)
class RackLists:
    """The unfenced brokers of each rack, ascending, where there are no others."""

    #: In the order in which rounds walk the racks, until shuffled.
    racks: tuple[tuple[int, ...], ...]
    #: Numbers of the racks in the order in which they draw random numbers.
    drawing: tuple[int, ...]
    broker_count: int
    #: int64[k]: of the random numbers of one shuffle: the walk's, then each list's.
    shuffle_bounds: NDArray[np.int64]

    @classmethod
    def of(cls, racks: Sequence[Sequence[int]], drawing: Sequence[int]) -> RackLists:
        """The lists of some brokers by rack, in the order of the walk."""
        sizes = [len(racks), *(len(racks[rack]) for rack in drawing)]
        bounds = [bound for size in sizes for bound in range(size, 1, -1)]
        return cls(tuple(map(tuple, racks)), tuple(drawing), sum(map(len, racks)), np.array(bounds, np.int64))

    def allow(self, replication_factor: int) -> bool:
        """Whether placements are regular.

        So they are when no list runs out, and none is met again in the same epoch without having been used in between:
        each is used in every round, or at least once in either half of the epochs.
        """
        rack_count = len(self.racks)
        if replication_factor < rack_count and self.broker_count < 2 * rack_count:
            return False
        laps = -(-replication_factor // rack_count)
        return all(len(brokers) >= laps for brokers in self.racks)


@dataclass(frozen=True, slots=True)
class RegularDraw:
    """The draws for the partitions of one topic. An epoch ends with a shuffle."""

    lists: RackLists
    partition_count: int
    replication_factor: int
    #: Rack in which the first round starts.
    first_rack: int
    #: Where each rack's list stands at the first round.
    offsets: list[int]
    #: int64[epochs - 1, k]: the random numbers of the shuffle after each epoch but the last.
    shuffles: NDArray[np.int64]


def draw(
    lists: RackLists,
    partition_count: int,
    replication_factor: int,
    first_rack: int,
    offsets: list[int],
    random: RandomSource,
) -> RegularDraw:
    """Draw what follows the choice of ``first_rack`` and ``offsets``: a shuffle after every epoch."""
    shuffles = max(0, -(-partition_count // _rounds_per_epoch(lists, partition_count)) - 1)
    bounds = np.tile(lists.shuffle_bounds, shuffles)
    drawn = random.next_ints(bounds).reshape(shuffles, len(lists.shuffle_bounds))
    return RegularDraw(lists, partition_count, replication_factor, first_rack, offsets, drawn)


def _rounds_per_epoch(lists: RackLists, partition_count: int) -> int:
    """As many rounds as there are brokers; a single one is never shuffled."""
    return lists.broker_count if lists.broker_count > 1 else max(partition_count, 1)


def work_out(draws: Sequence[RegularDraw]) -> NDArray[np.int32]:
    """int32[topics, partitions, factor] of draws with equal lists, counts and factors."""
    lists, count, factor = draws[0].lists, draws[0].partition_count, draws[0].replication_factor
    rack_count, topic_count = len(lists.racks), len(draws)
    if not count:
        return np.empty((topic_count, 0, factor), np.int32)
    sizes = np.array([len(brokers) for brokers in lists.racks])
    topics = np.arange(topic_count)[:, None, None]
    rounds = np.arange(count)[:, None]
    replicas = np.arange(factor)
    epochs = rounds // _rounds_per_epoch(lists, count)
    epoch_count = int(epochs[-1, 0]) + 1
    first_racks = np.array([drawn.first_rack for drawn in draws])[:, None, None]
    walk_at = epochs * rack_count + (first_racks + rounds + replicas) % rack_count
    walks, brokers = _shuffled(draws)
    racks = walks.take(topics * (epoch_count * rack_count) + walk_at)
    # Uses of each list before each round, the first round of all left out: it uses the lists where they stand, each
    # later use starts one broker further.
    uses = np.zeros((topic_count, count, rack_count), np.intp)
    at_use = (topics * count + rounds) * rack_count + racks
    uses.reshape(-1)[at_use] = 1
    uses[:, 0] = 0
    advances = uses.cumsum(axis=1).take(at_use)
    offsets = np.array([drawn.offsets for drawn in draws]).take(topics * rack_count + racks)
    at = (offsets + advances + replicas // rack_count) % sizes.take(racks)
    starts = (sizes.cumsum() - sizes).take(racks)
    placed: NDArray[np.int32] = brokers.take((topics * epoch_count + epochs) * lists.broker_count + starts + at)
    return placed


def _shuffled(draws: Sequence[RegularDraw]) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Of every draw and epoch, the order in which the racks are walked and the brokers of all racks in turn.

    As ``controller.decisions.random_source.shuffle`` of the walk and of each list, for all draws at once.
    """
    lists, draw_count, epochs = draws[0].lists, len(draws), len(draws[0].shuffles) + 1
    held = [broker for brokers in lists.racks for broker in brokers]
    walks = np.empty((epochs, draw_count, len(lists.racks)), np.intp)
    brokers = np.empty((epochs, draw_count, len(held)), np.int32)
    walks[0], brokers[0] = np.arange(len(lists.racks)), held
    others = np.stack([drawn.shuffles for drawn in draws], axis=2)  # [epochs - 1, k, draws]
    rows = np.arange(draw_count)
    starts = np.cumsum([0, *map(len, lists.racks)]).tolist()
    for epoch in range(1, epochs):
        walks[epoch], brokers[epoch] = walks[epoch - 1], brokers[epoch - 1]
        places = [walks[epoch], *(brokers[epoch][:, starts[rack] : starts[rack + 1]] for rack in lists.drawing)]
        number = 0
        for items in places:
            for last in range(items.shape[1] - 1, 0, -1):
                other = others[epoch - 1, number]
                exchanged = items[rows, other]
                items[rows, other] = items[:, last]
                items[:, last] = exchanged
                number += 1
    return np.ascontiguousarray(walks.swapaxes(0, 1)), np.ascontiguousarray(brokers.swapaxes(0, 1))
