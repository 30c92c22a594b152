"""The log's disk work: steps, captured on the loop thread, run in order, as a rule on the disk thread.

A job carries everything staged since the job before it, so one sync covers all batches that queued up meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from quorate.metadata_log.segments.mark import Mark
from quorate.metadata_log.segments.segment_files import SegmentFiles


class DiskStep(Protocol):
    """One staged change of the files."""

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        """Make it; a ``yield`` stands after every disk call."""


@dataclass(slots=True)
class WriteBatches:
    """Batches that go to one place of the newest segment, back to back."""

    base: int
    position: int
    chunks: list[bytes]
    #: Position after the last chunk.
    end_position: int

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        data = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        yield from files.write(self.base, self.position, data)


@dataclass(frozen=True, slots=True)
class StartSegment:
    """Roll to a new segment."""

    base: int

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        yield from files.create(self.base)


@dataclass(frozen=True, slots=True)
class CutTail:
    """Remove everything from an offset on, newest segment first."""

    #: What the mark says at most before the first file is touched.
    mark: Mark
    #: Segments that go as a whole, newest first.
    unlinked: tuple[int, ...]
    #: Segment that is cut, and its size afterwards; None when the cut falls between two.
    cut: tuple[int, int] | None

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        current = files.mark.current
        assert current is not None
        if current.durable_end > self.mark.durable_end:
            # Otherwise a crash after the cut would look like the loss of something promised.
            yield from files.mark.write_durably(self.mark)
        yield from files.unlink(self.unlinked)
        if self.cut is not None:
            yield from files.cut(*self.cut)


@dataclass(frozen=True, slots=True)
class DropPrefix:
    """Remove whole segments at the log's start, oldest first."""

    unlinked: tuple[int, ...]

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        yield from files.unlink(self.unlinked)


@dataclass(frozen=True, slots=True)
class DropLog:
    """Remove every segment, newest first: a durable checkpoint takes their place."""

    #: At the checkpoint's end. True before the first file goes, as the checkpoint is durable.
    mark: Mark
    unlinked: tuple[int, ...]

    def apply(self, files: SegmentFiles) -> Iterator[None]:
        yield from files.mark.write_durably(self.mark)
        yield from files.unlink(self.unlinked)


@dataclass(slots=True)
class FlushJob:
    """All that was staged when it was made. Run it once, then give it to ``MetadataLog.job_done``."""

    files: SegmentFiles
    steps: list[DiskStep]
    #: True once every step is done and synced.
    mark: Mark
    #: Lowest offset that the log was truncated to since this job was made; kept by the loop thread, None = none.
    truncated_to: int | None = field(default=None)
    #: Whether a checkpoint took the place of the log since: then this job says nothing about the log any more.
    is_superseded: bool = field(default=False)

    @property
    def durable_end(self) -> int:
        """Exclusive end of what is durable when the job is done."""
        return self.mark.durable_end

    @property
    def path(self) -> str:
        """The file that it writes batches to first; the directory where it writes none."""
        bases = (step.base for step in self.steps if isinstance(step, WriteBatches))
        return next(map(self.files.path, bases), self.files.directory)

    @property
    def written_bytes(self) -> float:
        """Bytes to write when it is one write to a file that is there; infinite when it changes more than that."""
        (step, *others) = self.steps
        return step.end_position - step.position if isinstance(step, WriteBatches) and not others else math.inf

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``."""
        for step in self.steps:
            yield from step.apply(self.files)
        yield from self.files.sync()
        # Last, and unsynced: the mark says less than the truth for a while, never more.
        yield from self.files.mark.write(self.mark)
