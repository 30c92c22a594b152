"""The log that the directories of a cluster's controllers have between them, as ``joined_log`` is that of running ones.

The newest log is that with the latest epoch, and of those the longest: what was committed is in it wherever it is in
any, or in as many as make a majority. Where it begins later than another, that goes before it, provided that both are
one log: logs of a quorum that agree in epoch and CRC of a batch agree in all before it (Raft's log matching). What
another has behind the place where the next begins does not count: it may never have been committed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.errors import StorageError
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.checkpoints.stretches import LogStretch, stretches_of
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.errors import ImageNotAvailable


class OtherCluster(StorageError):
    """Directories of two clusters, which have no log between them."""


class JoinedFiles(NamedTuple):
    """The log, from its end backwards."""

    stretches: Iterator[LogStretch]
    passed_over: list[PassedOver]
    #: Why a directory is no part of it.
    left_out: list[str]


class _Extent:
    """One directory's log: where it begins and ends, and what tells its batches from others'."""

    def __init__(self, path: Path, tell: Callable[[PassedOver], None]) -> None:
        self.path = path
        start, batches = batches_from_start(path, tell)
        self.begin = self.end = start.end_offset
        self.first_epoch = self.last_epoch = start.head.provenance.epoch
        self._bases = array("q")
        #: Epoch and CRC of each batch.
        self._marks = array("Q")
        for batch in batches:
            header = batch.header
            if not self._bases:
                self.first_epoch = header.epoch
            self._bases.append(header.base_offset)
            self._marks.append(header.epoch << 32 | header.crc)
            self.end, self.last_epoch = header.end_offset, header.epoch

    def mark_at(self, offset: int) -> int | None:
        """The mark that tells the batch that begins at an offset from others; None where none begins there."""
        at = bisect_left(self._bases, offset)
        return self._marks[at] if at < len(self._bases) and self._bases[at] == offset else None

    def why_not_before(self, later: _Extent) -> str | None:
        """The reason why this log cannot go before one that begins later; None where it can."""
        if self.end < later.begin:
            return f"it ends at offset {self.end}, and what is read of the others begins at {later.begin}"
        if self.end == later.begin and self.last_epoch <= later.first_epoch:
            return None
        mark = self.mark_at(later.begin)
        if mark is not None and mark == later.mark_at(later.begin):
            return None
        return f"it is not the log of {later.path}: at offset {later.begin} they differ"


def log_of_directories(paths: Sequence[Path]) -> JoinedFiles:
    """The log that the directories have between them.

    Raises:
        OtherCluster: they are of several. ImageNotAvailable, StorageError: none of them can be read; the reason why
            the first cannot.
    """
    _require_one_cluster(paths)
    passed: list[PassedOver] = []
    left_out: list[str] = []
    extents: list[_Extent] = []
    errors: list[StorageError | ImageNotAvailable] = []
    for path in dict.fromkeys(paths):
        try:
            extents.append(_Extent(path, passed.append))
        except (ImageNotAvailable, StorageError) as error:
            errors.append(error)
    if not extents:
        raise errors[0]
    left_out = [str(error) for error in errors]
    newest = max(extents, key=lambda one: (one.last_epoch, one.end, -one.begin))
    chain = [newest]
    while before := _before(chain[0], extents):
        chain.insert(0, before)
    earlier = (one for one in extents if one.begin < chain[0].begin)
    left_out += [f"{one.path}: {one.why_not_before(chain[0])}" for one in earlier]
    return JoinedFiles(_stretches(chain), passed, left_out)


def _before(later: _Extent, extents: Sequence[_Extent]) -> _Extent | None:
    """The log that goes before another and begins first; None where there is none."""
    earlier = (one for one in extents if one.begin < later.begin and one.why_not_before(later) is None)
    return min(earlier, key=lambda one: one.begin, default=None)


def _stretches(chain: Sequence[_Extent]) -> Iterator[LogStretch]:
    below: int | None = None
    for one in reversed(chain):
        yield from stretches_of(one.path, below=below)
        below = one.begin


def _require_one_cluster(paths: Sequence[Path]) -> None:
    known: dict[str, Path] = {}
    for path in paths:
        file = path / META_PROPERTIES_NAME
        if file.is_file():
            known.setdefault(decode_meta_properties(file.read_bytes(), str(file)).cluster_id, path)
    if len(known) > 1:
        (one, first), (other, second) = list(known.items())[:2]
        raise OtherCluster(
            f"{second}: is of cluster {other}, and {first} of {one}; give the directories of one cluster"
        )
