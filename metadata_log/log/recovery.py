"""Opening a log, third part: the files of an undamaged log are put in order. A damaged one is left as it lies.

First everything is read (``recovery_survey``), then judged (``recovery_verdict``), and only then changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.metadata_log.checkpoints.checkpoint_files import (
    MANIFEST_SUFFIX,
    CheckpointId,
    CheckpointSurvey,
    list_checkpoints,
    manifest_name,
    survey_checkpoints,
)
from quorate.metadata_log.disk import PART_SUFFIX, Disk, OpenMode, replace_file
from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.log.log_entries import EntryTable
from quorate.metadata_log.log.recovery_survey import LogSurvey
from quorate.metadata_log.log.recovery_verdict import Damage, find_damage
from quorate.metadata_log.segments.mark import Mark, MarkFile, read_mark
from quorate.metadata_log.segments.segment_files import SegmentFiles, list_segments

LEADER_EPOCHS_NAME: Final = "leader-epoch-checkpoint"
#: Bytes read and written again at once above the mark.
_COPY_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TornTail:
    """The bytes cut off the end of the log: never synced, so never acknowledged."""

    path: str
    position: int
    offset: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log as it is after recovery, or as it lies when it is damaged."""

    files: SegmentFiles
    entries: EntryTable
    #: Base offsets of the control batches among the entries.
    controls: list[int]
    #: (base, bytes), ascending.
    segments: list[tuple[int, int]]
    checkpoints: CheckpointSurvey
    start_offset: int
    start_epoch: int
    commit: int
    damage: Damage | None
    torn_tail: TornTail | None
    dropped_for: CheckpointId | None


def recover(disk: Disk, directory: str) -> Recovered:
    """Read, judge and repair the log in ``directory``. See ``MetadataLog.open``.

    Raises:
        OSError: the disk failed.
    """
    files = SegmentFiles(disk, directory, MarkFile(disk, directory))
    try:
        return _recovered(files)
    except BaseException:
        files.close()
        files.mark.close()
        raise


def _recovered(files: SegmentFiles) -> Recovered:
    disk, directory = files.disk, files.directory
    checkpoints = survey_checkpoints(disk, directory)
    try:
        mark = read_mark(disk, directory)
    except CorruptState as error:
        damage = Damage(error.path, 0, 0, error.reason, None)
        return _damaged(files, LogSurvey(disk, directory, []), checkpoints, damage)
    survey = LogSurvey(disk, directory, list_segments(disk, directory))
    survey.read()
    newest = checkpoints.usable[-1].id if checkpoints.usable else None
    found = find_damage(survey, mark, newest)
    if found is not None:
        return _damaged(files, survey, checkpoints, found)
    return _Repair(files, survey, mark, checkpoints).run()


def _damaged(files: SegmentFiles, survey: LogSurvey, checkpoints: CheckpointSurvey, damage: Damage) -> Recovered:
    start = survey.first_base
    return Recovered(
        files, survey.entries, survey.controls, survey.segments, checkpoints, start, 0, start, damage, None, None
    )


@dataclass(slots=True)
class _Repair:
    """Put the files of an undamaged log in order. Blocking; every step may be the last before a crash."""

    files: SegmentFiles
    survey: LogSurvey
    mark: Mark | None
    checkpoints: CheckpointSurvey
    torn_tail: TornTail | None = field(default=None)
    dropped_for: CheckpointId | None = field(default=None)

    def run(self) -> Recovered:
        newest = self.checkpoints.usable[-1].id if self.checkpoints.usable else None
        if newest is not None and self._must_drop(newest):
            self._drop_for(newest)
        else:
            self._cut_torn_tail()
            self._make_durable()
        start = self._start()
        entries = self.survey.entries
        entries.drop_first(entries.starting_at(start.end_offset))
        last_epoch = self.survey.last_epoch if len(entries) else start.epoch
        commit = max(start.end_offset, self.mark.commit if self.mark else 0, newest.end_offset if newest else 0)
        commit = min(commit, entries.end_offset)
        self._remove_leftovers()
        _finish(replace_file(self.files.disk, self.files.directory, LEADER_EPOCHS_NAME, self._leader_epochs()))
        _finish(self.files.mark.create(Mark(entries.end_offset, last_epoch, commit)))
        return Recovered(
            files=self.files,
            entries=entries,
            controls=[base for base in self.survey.controls if start.end_offset <= base < entries.end_offset],
            segments=self.survey.segments,
            checkpoints=self.checkpoints,
            start_offset=start.end_offset,
            start_epoch=start.epoch,
            commit=commit,
            damage=None,
            torn_tail=self.torn_tail,
            dropped_for=self.dropped_for,
        )

    def _must_drop(self, newest: CheckpointId) -> bool:
        return newest.end_offset > self.survey.end_offset or not self.survey.holds(newest)

    def _drop_for(self, newest: CheckpointId) -> None:
        """The checkpoint is newer than the log, or of another history: it was installed, and the log must go."""
        if self.survey.segments:
            self.dropped_for = newest
            # Its name may be new and not durable yet: writing the mark syncs the directory before anything goes.
            _finish(self.files.mark.create(Mark(newest.end_offset, newest.epoch, newest.end_offset)))
            _finish(self.files.unlink(tuple(base for base, _ in reversed(self.survey.segments))))
        self.survey.segments.clear()
        self.survey.first_base = newest.end_offset
        self.survey.entries = EntryTable(newest.end_offset)

    def _cut_torn_tail(self) -> None:
        bad = self.survey.bad
        if bad is None:
            return
        index = self.survey.bad_segment
        base, size = self.survey.segments[index]
        # Later segments are empty, else this would be corruption.
        later = tuple(later for later, _ in reversed(self.survey.segments[index + 1 :]))
        _finish(self.files.unlink(later))
        self.torn_tail = TornTail(self.files.path(base), bad.position, bad.offset, size - bad.position, bad.reason)
        if base != bad.offset and bad.position == 0:
            _finish(self.files.unlink((base,)))  # an empty segment of another place
            del self.survey.segments[index:]
            return
        _finish(self.files.cut(base, bad.position))
        self.survey.segments[index:] = [(base, bad.position)]

    def _make_durable(self) -> None:
        """Write again, and sync, what lies above the mark, and cut the last segment where it ends.

        It may be in the page cache only, and after a sync that failed the kernel takes those pages for clean: a sync
        alone would vouch for bytes that never reached the disk, or leave behind a cut that did not what was cut off.
        The bytes written are those that are there, so a crash in between changes nothing. Without a mark nothing was
        promised and no sync of ours has failed.
        """
        promised = self.mark.durable_end if self.mark is not None else None
        for index, (base, size) in enumerate(self.survey.segments):
            is_last = index + 1 == len(self.survey.segments)
            end = self.survey.end_offset if is_last else self.survey.segments[index + 1][0]
            if promised is None:
                self._sync(base)
            elif size and end > promised:
                _finish(self._rewrite(base, self._position(max(promised, base)), size))
            if is_last and promised is not None:
                _finish(self.files.cut(base, size))

    def _sync(self, base: int) -> None:
        file = self.files.disk.open_file(self.files.path(base), OpenMode.WRITE)
        try:
            file.sync()
        finally:
            file.close()

    def _position(self, offset: int) -> int:
        """Byte position of the batch that holds ``offset``, in its segment."""
        return self.survey.entries.position_of(self.survey.entries.containing(offset))

    def _rewrite(self, base: int, position: int, size: int) -> Iterator[None]:
        file = self.files.disk.open_file(self.files.path(base), OpenMode.READ)
        try:
            while position < size:
                data = file.pread(_COPY_BYTES, position)
                yield from self.files.write(base, position, data)
                position += len(data)
        finally:
            file.close()
        yield from self.files.sync()

    def _start(self) -> CheckpointId:
        """The begin of the log: with its whole history at 0, else at the oldest checkpoint it continues."""
        first = self.survey.first_base
        if first == 0:
            return CheckpointId(0, 0)
        # There is one: find_damage and _must_drop saw to it that the newest fits.
        usable = (info.id for info in self.checkpoints.usable)
        return next(c for c in usable if c.end_offset >= first and self.survey.holds(c))

    def _remove_leftovers(self) -> None:
        """Files that were being written when the process ended, and manifests whose checkpoint never came."""
        disk, directory = self.files.disk, self.files.directory
        names = disk.list_directory(directory)
        manifests = {name for name in names if name.endswith(MANIFEST_SUFFIX)}
        manifests -= {manifest_name(checkpoint) for checkpoint in list_checkpoints(disk, directory)}
        for name in names:
            if name.endswith(PART_SUFFIX) or name in manifests:
                disk.unlink(f"{directory}/{name}")

    def _leader_epochs(self) -> bytes:
        entries = self.survey.entries
        starts = []
        index = 0
        while index < len(entries):
            epoch = entries.epoch_of(index)
            starts.append((epoch, entries.base_of(index)))
            index = entries.first_of_epoch_above(epoch)
        return leader_epochs_file(starts)


def leader_epochs_file(starts: Sequence[tuple[int, int]]) -> bytes:
    """Content of ``leader-epoch-checkpoint``, Kafka's: version 0, number of lines, then where epochs start."""
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in starts)
    return f"0\n{len(starts)}\n{lines}".encode("ascii")


def _finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass
