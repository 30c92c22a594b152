"""The log that one simulated disk would keep in a power cut, read batch by batch by a reader that asks no node.

Only bytes that were synced count, under names that were synced: production's own account of what is durable is what is
checked with this. Read again is only what became durable since the last look.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.metadata_log.batches.batch import BatchHeader, checked_header, iter_records
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointId, checkpoint_id
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.records import SnapshotFooterRecord
from quorate.metadata_log.segments.segment_files import segment_base
from quorate.scripts.simulation.machine.inode import Inode
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk

#: Stands for the end offset of a batch that was sound once.
_ROTTEN: Final = -1


class BatchFact(NamedTuple):
    """The facts that identify a batch of the log."""

    base_offset: int
    epoch: int
    crc: int


def fact_of(header: BatchHeader) -> BatchFact:
    """The identity of the batch with this header."""
    return BatchFact(header.base_offset, header.epoch, header.crc)


class Held(NamedTuple):
    """The log that a disk held at some moment."""

    batches: dict[int, BatchFact]
    #: End offset of the newest whole checkpoint.
    covered_end: int

    def holds(self, end_offset: int, fact: BatchFact) -> bool:
        """See ``DurableLog.holds``."""
        return self.covered_end >= end_offset or self.batches.get(end_offset) == fact


@dataclass(slots=True)
class _File:
    """The sound batches at the beginning of a file, back to back."""

    #: (position behind it, end offset), ascending.
    ends: list[tuple[int, int]] = field(default_factory=list)
    #: By end offset.
    facts: dict[int, BatchFact] = field(default_factory=dict)

    def read(self, inode: Inode) -> None:
        """Take notice of what changed. A batch that has rotted is passed over, and what lies behind it is there."""
        changed_from, inode.changed_from = inode.changed_from, None
        if changed_from is None:
            return
        known: dict[int, int] = {}
        while self.ends and self.ends[-1][0] > changed_from:
            stop, end_offset = self.ends.pop()
            self.facts.pop(end_offset, None)
            known[self._position] = stop
        with memoryview(inode.durable) as content:
            while self._position < len(content):
                try:
                    header = checked_header(content, self._position)
                except MalformedData:
                    if self._position not in known:
                        break
                    self.ends.append((known[self._position], _ROTTEN))
                else:
                    self.ends.append((self._position + header.size, header.end_offset))
                    self.facts[header.end_offset] = fact_of(header)

    @property
    def _position(self) -> int:
        return self.ends[-1][0] if self.ends else 0


class DurableLog:
    """See the module. One for each disk: it alone may reset ``Inode.changed_from``."""

    def __init__(self, disk: MemoryDisk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        #: Changes of the disk, and of its names, that were taken notice of.
        self._seen = self._seen_names = -1
        #: Segments and checkpoints.
        self._files: dict[Inode, _File] = {}
        #: Ascending by base offset.
        self._segments: list[tuple[int, _File]] = []
        #: All checkpoints but the bootstrap one, ascending.
        self._of_checkpoints: dict[Inode, CheckpointId] = {}
        #: Whole checkpoints that hold state, ascending.
        self.checkpoints: list[CheckpointId] = []

    def holds(self, end_offset: int, fact: BatchFact) -> bool:
        """Whether the batch lies in a segment, or a whole checkpoint covers it."""
        self._look()
        if self.checkpoints and self.checkpoints[-1].end_offset >= end_offset:
            return True
        number = bisect_right(self._segments, fact.base_offset, key=lambda segment: segment[0]) - 1
        return number >= 0 and self._segments[number][1].facts.get(end_offset) == fact

    def batches(self) -> dict[int, BatchFact]:
        """The log's batches by end offset, as far as they follow each other from where the first segment begins."""
        self._look()
        found: dict[int, BatchFact] = {}
        due = self._segments[0][0] if self._segments else 0
        for base, file in self._segments:
            for _, end_offset in file.ends:
                fact = file.facts.get(end_offset)
                if fact is None or base > due or fact.base_offset != due:
                    return found
                found[end_offset] = fact
                due = end_offset
        return found

    def held(self) -> Held:
        """For later, when the disk is another."""
        self._look()
        facts = {end: fact for _, file in self._segments for end, fact in file.facts.items()}
        return Held(facts, self.checkpoints[-1].end_offset if self.checkpoints else 0)

    def _look(self) -> None:
        disk = self._disk
        if self._seen == disk.durable_changes:
            return
        self._seen = disk.durable_changes
        is_listed_anew = self._seen_names != disk.durable_name_changes
        if is_listed_anew:
            self._seen_names = disk.durable_name_changes
            self._list_files()
        is_checkpoint_changed = is_listed_anew
        for inode, file in self._files.items():
            if inode.changed_from is not None:
                file.read(inode)
                is_checkpoint_changed |= inode in self._of_checkpoints
        if is_checkpoint_changed:
            found = self._of_checkpoints.items()
            self.checkpoints = [checkpoint for inode, checkpoint in found if _is_whole(self._files[inode], inode)]

    def _list_files(self) -> None:
        """Take notice of names that came and went."""
        before, self._files = self._files, {}
        self._segments, self._of_checkpoints = [], {}
        for name, inode in self._disk.durable_files(self._directory):
            base, checkpoint = segment_base(name), checkpoint_id(name)
            if base is not None:
                file = self._files[inode] = before.get(inode) or _File()
                self._segments.append((base, file))
            elif checkpoint is not None and checkpoint != BOOTSTRAP_ID:
                self._files[inode] = before.get(inode) or _File()
                self._of_checkpoints[inode] = checkpoint


def _is_whole(file: _File, inode: Inode) -> bool:
    """Whether a checkpoint has its footer, nothing behind it, and nothing in it has rotted."""
    if not file.ends or file.ends[-1][0] != len(inode.durable) or len(file.facts) != len(file.ends):
        return False
    last = file.ends[-2][0] if len(file.ends) > 1 else 0
    return any(isinstance(logged.record, SnapshotFooterRecord) for logged in iter_records(inode.durable, last))
