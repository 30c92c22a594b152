"""Opening a log: what is there, what was promised, what is wrong with it, and putting the files in order.

First everything is read (``_Survey``), then judged (``_find_damage``, ``_must_drop``), and only then changed
(``_Repair``): a damaged log is left exactly as it lies.

Damage or torn tail? A bad batch is corruption when it lies below the mark, or when a valid batch that continues the log
follows it; so is a log that ends below the mark, unless a checkpoint covers what was promised. Only the rest is a tail
that was never acknowledged, and is cut. A power cut that persists a later page of one unsynced write but not an
earlier one looks like corruption, and is treated as such: a lost promise is worse than a node that must catch up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from metadata_log.batch import BatchHeader
from metadata_log.checkpoint_files import (
    MANIFEST_SUFFIX,
    CheckpointId,
    CheckpointSurvey,
    list_checkpoints,
    manifest_name,
    survey_checkpoints,
)
from metadata_log.disk import PART_SUFFIX, Disk, OpenMode, replace_file
from metadata_log.errors import CorruptState
from metadata_log.log_entries import EntryTable
from metadata_log.mark import MARK_NAME, Mark, MarkFile, read_mark
from metadata_log.segment_files import SegmentFiles, list_segments, segment_name
from metadata_log.segment_scan import BadBatch, find_successor, scan_batches

LEADER_EPOCHS_NAME = "leader-epoch-checkpoint"
#: Bytes read and written again at once above the mark.
_COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a log cannot be used."""

    #: File, byte position in it and log offset of the first thing that is wrong.
    path: str
    position: int
    offset: int
    reason: str
    #: Base of the first segment that cannot be kept; None when all that is there is sound, but not all.
    first_bad_segment: int | None

    def __str__(self) -> str:
        return f"{self.path}: damaged at byte {self.position}, offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TornTail:
    """What was cut off the end of the log: never synced, so never acknowledged."""

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
    # A name that is visible now may still be lost; whatever is concluded from it must not be.
    disk.sync_directory(directory)
    files = SegmentFiles(disk, directory, MarkFile(disk, directory))
    checkpoints = survey_checkpoints(disk, directory)
    try:
        mark = read_mark(disk, directory)
    except CorruptState as error:
        damage = Damage(error.path, 0, 0, error.reason, None)
        return _damaged(files, _Survey(disk, directory, []), checkpoints, damage)
    survey = _Survey(disk, directory, list_segments(disk, directory))
    survey.read()
    newest = checkpoints.usable[-1].id if checkpoints.usable else None
    found = _find_damage(survey, mark, newest)
    if found is not None:
        return _damaged(files, survey, checkpoints, found)
    return _Repair(files, survey, mark, checkpoints).run()


def _damaged(files: SegmentFiles, survey: _Survey, checkpoints: CheckpointSurvey, damage: Damage) -> Recovered:
    start = survey.first_base
    return Recovered(files, survey.entries, survey.segments, checkpoints, start, 0, start, damage, None, None)


class _Survey:
    """All segments, read and checked up to the first bad batch."""

    def __init__(self, disk: Disk, directory: str, bases: list[int]) -> None:
        self.disk = disk
        self.directory = directory
        self._bases = bases
        self.first_base = bases[0] if bases else 0
        self.entries = EntryTable(self.first_base)
        #: (base, bytes) of every file there, bad and unread ones included.
        self.segments: list[tuple[int, int]] = []
        #: The first bad batch, the index of its segment, and whether the log goes on behind it.
        self.bad: BadBatch | None = None
        self.bad_segment = 0
        self.is_bad_followed = False

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
        for index, base in enumerate(self._bases):
            self._read_segment(index, base)
        if self.bad is not None:
            later = self.segments[self.bad_segment + 1 :]
            self.is_bad_followed = self.is_bad_followed or any(size > 0 for _, size in later)

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
                self.is_bad_followed = file.size() > 0
                return
            self.bad = scan_batches(file, base, self.last_epoch, self._visit)
            self.is_bad_followed = self.bad is not None and find_successor(file, self.bad) is not None
        finally:
            file.close()

    def _visit(self, position: int, header: BatchHeader) -> None:
        self.entries.add(header.end_offset, header.epoch, position, header.size)


def _find_damage(survey: _Survey, mark: Mark | None, newest: CheckpointId | None) -> Damage | None:
    promised = mark.durable_end if mark is not None else 0
    is_covered = newest is not None and newest.end_offset >= promised
    bad = survey.bad
    if bad is not None:
        base = survey.segments[survey.bad_segment][0]
        path = survey.path(base)
        if survey.is_bad_followed:
            return Damage(path, bad.position, bad.offset, f"{bad.reason}; the log goes on behind it", base)
        if bad.offset < promised and not is_covered:
            return Damage(path, bad.position, bad.offset, f"{bad.reason}; promised up to {promised}", base)
    if survey.end_offset < promised and not is_covered:
        return _whole_file(survey, survey.end_offset, f"the log ends here, but was promised up to {promised}", False)
    return _missing_history(survey, newest) or _contradiction(survey, mark, newest)


def _missing_history(survey: _Survey, newest: CheckpointId | None) -> Damage | None:
    if not survey.segments or survey.first_base == 0:
        return None
    if newest is None:
        return _whole_file(survey, 0, "what was before it is missing, and no usable checkpoint covers it", True)
    if newest.end_offset < survey.first_base:
        reason = f"what lies between the newest checkpoint, {newest.end_offset}, and it is missing"
        return _whole_file(survey, newest.end_offset, reason, True)
    return None


def _contradiction(survey: _Survey, mark: Mark | None, newest: CheckpointId | None) -> Damage | None:
    """The log against what the mark says about it, where no CRC would tell."""
    if mark is None or survey.end_offset < mark.durable_end:
        return None
    if newest is not None and not survey.holds(newest) and newest.end_offset < mark.commit:
        reason = f"it does not hold epoch {newest.epoch} at the checkpoint's end, though more was committed"
        return _whole_file(survey, newest.end_offset, reason, True)
    is_superseded = newest is not None and newest.end_offset == mark.durable_end
    epoch = survey.epoch_at(mark.durable_end)
    if mark.durable_end > survey.first_base and not is_superseded and epoch != mark.durable_epoch:
        reason = f"epoch {epoch} ends where epoch {mark.durable_epoch} was promised"
        return _at_offset(survey, mark.durable_end, reason)
    return None


def _whole_file(survey: _Survey, offset: int, reason: str, is_bad: bool) -> Damage:
    """Damage that lies in no batch: it is told of the first segment if that cannot stay, else of the last."""
    if not survey.segments:
        return Damage(survey.directory, 0, offset, reason, None)
    base, size = survey.segments[0 if is_bad else -1]
    return Damage(survey.path(base), 0 if is_bad else size, offset, reason, base if is_bad else None)


def _at_offset(survey: _Survey, end_offset: int, reason: str) -> Damage:
    """Damage in the batch that should end at an offset within the log."""
    index = survey.entries.containing(end_offset - 1)
    offset = survey.entries.base_of(index)
    base = max(base for base, _ in survey.segments if base <= offset)
    return Damage(survey.path(base), survey.entries.position_of(index), offset, reason, base)


@dataclass(slots=True)
class _Repair:
    """Put the files of an undamaged log in order. Blocking; every step may be the last before a crash."""

    files: SegmentFiles
    survey: _Survey
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
        # Later segments are empty, else the bad batch would be followed.
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
        """Write again, and sync, what lies above the mark.

        It may be in the page cache only, and after a sync that failed the kernel takes those pages for clean: a sync
        alone would vouch for bytes that never reached the disk. The bytes written are those that are there, so a crash
        in between changes nothing. Without a mark nothing was promised and no sync of ours has failed.
        """
        promised = self.mark.durable_end if self.mark is not None else None
        for index, (base, size) in enumerate(self.survey.segments):
            is_last = index + 1 == len(self.survey.segments)
            end = self.survey.end_offset if is_last else self.survey.segments[index + 1][0]
            if promised is None:
                self._sync(base)
            elif size and end > promised:
                _finish(self._rewrite(base, self._position(max(promised, base)), size))

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
        """Where the log begins: with its whole history at 0, else at the oldest checkpoint it continues."""
        first = self.survey.first_base
        if first == 0:
            return CheckpointId(0, 0)
        # There is one: _find_damage and _must_drop saw to it that the newest fits.
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
        """Kafka's form: version 0, number of lines, then where each epoch starts."""
        entries = self.survey.entries
        lines = []
        index = 0
        while index < len(entries):
            epoch = entries.epoch_of(index)
            lines.append(f"{epoch} {entries.base_of(index)}\n")
            index = entries.first_of_epoch_above(epoch)
        return f"0\n{len(lines)}\n{''.join(lines)}".encode("ascii")


def _finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


__all__ = ["LEADER_EPOCHS_NAME", "MARK_NAME", "Damage", "Recovered", "TornTail", "recover"]
