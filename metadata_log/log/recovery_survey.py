"""Opening a log, first part: reading what is there, up to the first thing that is wrong. Changes nothing."""

from __future__ import annotations

from quorate.metadata_log.batches.batch import CONTROL_ATTRIBUTE, HeaderFields
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.disk import Disk, OpenMode
from quorate.metadata_log.log.log_entries import EntryTable
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.metadata_log.segments.segment_scan import BadBatch, scan_batches
from quorate.metadata_log.segments.torn_write import is_torn, lacks_pages


class LogSurvey:
    """All segments, read and checked up to the first bad batch."""

    def __init__(self, disk: Disk, directory: str, bases: list[int]) -> None:
        self.disk = disk
        self.directory = directory
        self._bases = bases
        self.first_base = bases[0] if bases else 0
        self.entries = EntryTable(self.first_base)
        #: Base offsets of the control batches.
        self.controls: list[int] = []
        #: (base, bytes) of every file there, bad and unread ones included.
        self.segments: list[tuple[int, int]] = []
        #: The first bad batch, and the index of its segment.
        self.bad: BadBatch | None = None
        self.bad_segment = 0
        #: Whether it looks like more than a write that was cut short.
        self.is_corrupt = False
        #: Whether what looks so may be a write of which pages are missing: only of what was never promised.
        self.lacks_pages = False

    @property
    def end_offset(self) -> int:
        """Exclusive end of the last good batch before the first bad one."""
        return self.entries.end_offset

    @property
    def last_epoch(self) -> int:
        count = len(self.entries)
        return self.entries.epoch_of(count - 1) if count else 0

    def path(self, base: int) -> str:
        return f"{self.directory}/{segment_name(base)}"

    def epoch_at(self, offset: int) -> int | None:
        """Epoch of the batch that ends at ``offset``, None where none does."""
        index = self.entries.starting_at(offset) - 1
        return self.entries.epoch_of(index) if index >= 0 and self.entries.end_of(index) == offset else None

    def holds(self, checkpoint: CheckpointId) -> bool:
        """Whether the log continues this checkpoint, or has it within."""
        if checkpoint.end_offset == self.first_base:
            return not len(self.entries) or self.entries.epoch_of(0) >= checkpoint.epoch
        return self.epoch_at(checkpoint.end_offset) == checkpoint.epoch

    def read(self) -> None:
        """Read every segment; to be called once."""
        for index, base in enumerate(self._bases):
            self._read_segment(index, base)
        if self.bad is not None:
            later = self.segments[self.bad_segment + 1 :]
            if any(size > 0 for _, size in later):
                # A segment is durable before the next one is begun.
                self.is_corrupt, self.lacks_pages = True, False

    def _read_segment(self, index: int, base: int) -> None:
        file = self.disk.open_file(self.path(base), OpenMode.READ)
        try:
            self.segments.append((base, file.size()))
            if self.bad is not None:
                return
            self.bad_segment = index
            if base != self.end_offset:
                reason = f"the segment that starts at {self.end_offset} is missing"
                self.bad = BadBatch(0, self.end_offset, self.last_epoch, reason)
                self.is_corrupt = file.size() > 0
                return
            self.bad = scan_batches(file, base, self.last_epoch, self._visit)
            if self.bad is not None:
                self.is_corrupt = not is_torn(file, self.bad)
                self.lacks_pages = self.is_corrupt and lacks_pages(file, self.bad)
        finally:
            file.close()

    def _visit(self, position: int, fields: HeaderFields, batch: memoryview) -> None:
        base, _, epoch, _, attributes, _, count = fields
        if attributes & CONTROL_ATTRIBUTE:
            self.controls.append(base)
        self.entries.add(base + count, epoch, position, len(batch))
