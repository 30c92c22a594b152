"""Rows that are equal in all that the rules look at: there are few kinds of them, and each is decided once.

The rules see slots, not brokers, so partitions that lose one broker differ only in the slot it has, in who leads and in
who else is out: a handful of patterns among any number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.partitions.columns import Orders, PartitionRows, PartitionTargets

#: Rows below which looking for patterns costs more than it saves.
ROWS_MIN: Final = 256
#: Patterns that are looked for; with more of them all rows are decided one by one.
_PATTERNS_MAX: Final = 64
#: Slots that a row may have: eight sets over so many fill one word, and an order of them half of another.
_WIDTH_MAX: Final = 8
#: Above every number of replicas that fits: all such ``min.insync.replicas`` mean the same.
_MIN_ISR_MAX: Final = 15

_Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Patterns:
    """The division of n rows into p patterns."""

    #: int64[p]: one row of each.
    examples: NDArray[np.int64]
    #: int64[n]: the pattern of each row.
    of_row: NDArray[np.int64]


def patterns_of(rows: PartitionRows, targets: PartitionTargets) -> Patterns | None:
    """The patterns of these rows; None where their number, or what is asked of them, is not worth it.

    Rows with a reassignment are not: rules compare their directories, which are as many as there are.
    """
    count, width = rows.isr_order.shape
    asks_for_more = (targets.replicas, targets.removing, targets.adding)
    if count < ROWS_MIN or width > _WIDTH_MAX or rows.replica_order is not None or targets.directories is not None:
        return None
    if any(target is not None for target in asks_for_more) or (rows.removing | rows.adding).any():
        return None
    return _group(_words(rows, targets))


def _words(rows: PartitionRows, targets: PartitionTargets) -> list[_Words]:
    """All that the rules look at, in two or three words a row."""
    sets = [rows.replicas, rows.isr, rows.elr, rows.last_known_elr, targets.acceptable]
    sets += [column for column in (targets.isr, targets.unclean_shutdown) if column is not None]
    first = (rows.leader + 1).view(np.uint64)
    for column in sets:
        first = (first << np.uint64(8)) | column
    second = rows.is_recovering.astype(np.uint64)
    second = (second << np.uint64(2)) | targets.election.view(np.uint64)
    second = (second << np.uint64(4)) | np.minimum(targets.min_isr, _MIN_ISR_MAX).view(np.uint64)
    if targets.is_recovering is not None:
        second = (second << np.uint64(1)) | targets.is_recovering
    words = [first, _with_order(second, rows.isr_order)]
    if targets.isr_order is not None:
        words.append(_with_order(np.zeros(len(first), np.uint64), targets.isr_order))
    return words


def _with_order(words: _Words, order: Orders) -> _Words:
    for place in range(order.shape[1]):
        words = (words << np.uint64(4)) | (order[:, place] & np.uint8(15))  # NO_SLOT becomes 15
    return words


def _group(words: list[_Words]) -> Patterns | None:
    of_row = np.empty(len(words[0]), np.int64)
    left = np.arange(len(of_row))
    examples: list[int] = []
    while len(left):
        if len(examples) == _PATTERNS_MAX:
            return None
        is_other = words[0] != words[0][0]
        for word in words[1:]:
            is_other |= word != word[0]
        of_row[left.take(np.flatnonzero(~is_other))] = len(examples)
        examples.append(int(left[0]))
        rest = np.flatnonzero(is_other)
        left, words = left.take(rest), [word.take(rest) for word in words]
    return Patterns(np.array(examples, np.int64), of_row)
