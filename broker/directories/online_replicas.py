"""Finds the replicas of some brokers that lie in an online log directory, and so can follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.places import Flags, Ints, is_among
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.directories import LOST_CODE, MIGRATING_CODE, UNASSIGNED_CODE, DirectoryDictionary


@dataclass(frozen=True, slots=True, eq=False)
class Online:
    """The directories in which replicas of some brokers can be."""

    #: int64[n], ascending: a broker and the code of a directory that it has online.
    pairs: Ints
    #: int32[n], ascending: brokers that registered no directories; all of theirs count as online.
    anywhere: NDArray[np.int32]
    #: int32[n], ascending: all of them.
    brokers: NDArray[np.int32]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Online):
            return NotImplemented
        return np.array_equal(self.pairs, other.pairs) and np.array_equal(self.anywhere, other.anywhere)

    __hash__ = None  # type: ignore[assignment]

    def has(self, brokers: NDArray[np.int32], codes: NDArray[np.int32]) -> Flags:
        """bool[n]: whether each replica lies in a directory that is online, by broker and directory code."""
        here = is_among(brokers, self.brokers)
        at = np.flatnonzero(here)
        brokers, codes = brokers[at], codes[at]
        here[at] = is_among(_pairs(brokers, codes), self.pairs)
        here[at] |= is_among(brokers, self.anywhere) & (codes != LOST_CODE)
        return here


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """The directories in which replicas were, seen from an image later."""

    #: Of the later image, by the codes of the earlier one: the later has none of a directory that nothing lies in.
    online: Online
    #: int32[codes]: for every code that was, the present one of the same directory; None: all hold.
    codes: NDArray[np.int32] | None

    @classmethod
    def of(cls, before: DirectoryDictionary, now: MetadataImage, brokers: Iterable[int], online: Online) -> Self:
        """Of these brokers. ``before``: of the earlier image. ``online``: ``online_places`` of the later."""
        directories = now.partitions.directories
        if before.is_continued_by(directories):
            return cls(online, None)
        return cls(online_places(now, brokers, before), before.codes_in(directories))

    def left_behind(self, brokers: NDArray[np.int32], codes: NDArray[np.int32], old_codes: NDArray[np.int32]) -> Flags:
        """bool[n]: whether a replica was placed in another directory, and the one that it had is offline.

        What lies there does not come along. ``old_codes``: of the image before.
        """
        is_left: Flags = codes != (old_codes if self.codes is None else self.codes[old_codes])
        at = np.flatnonzero(is_left)
        is_left[at] = ~self.online.has(brokers[at], old_codes[at])
        return is_left


def online_places(
    image: MetadataImage, brokers: Iterable[int], directories: DirectoryDictionary | None = None
) -> Online:
    """Of these brokers, by what they registered. ``directories``: says the codes; None: the image's own."""
    codes_of = image.partitions.directories if directories is None else directories
    owners: list[int] = []
    codes: list[int] = []
    anywhere: list[int] = []
    for broker in sorted(brokers):
        known = image.cluster.brokers.get(broker)
        registered = () if known is None else known.directories
        if not registered:
            anywhere.append(broker)
            continue
        found = (codes_of.code(directory) for directory in registered)
        online = [MIGRATING_CODE, UNASSIGNED_CODE, *(code for code in found if code is not None)]
        owners += [broker] * len(online)
        codes += online
    pairs = np.sort(_pairs(np.array(owners, np.int32), np.array(codes, np.int32)))
    return Online(pairs, np.array(anywhere, np.int32), np.unique(np.array([*owners, *anywhere], np.int32)))


def _pairs(brokers: NDArray[np.int32], codes: NDArray[np.int32]) -> Ints:
    pairs: Ints = brokers.astype(np.int64) << 32 | codes
    return pairs
