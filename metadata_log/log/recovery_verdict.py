"""Opening a log, second part: is it damaged, or has it a torn tail?

A bad batch is corruption when it lies below the mark, when a valid batch of the log follows it, or when its own CRC
holds; so is a log that ends below the mark, unless a checkpoint covers what was promised. Only the rest is a tail that
was never acknowledged, and is cut: with what follows it where pages of it are missing above the mark, for then all of
that is one write that was never synced (``torn_write``). Without a mark nothing tells how much of a log that may cost.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.log.recovery_survey import LogSurvey
from quorate.metadata_log.segments.mark import Mark


@dataclass(frozen=True, slots=True)
class Damage:
    """The reason why a log cannot be used."""

    #: File, byte position in it and log offset of the first thing that is wrong.
    path: str
    position: int
    offset: int
    reason: str
    #: Base of the first segment that cannot be kept; None when all that is there is sound, but not all.
    first_bad_segment: int | None

    def __str__(self) -> str:
        return f"{self.path}: damaged at byte {self.position}, offset {self.offset}: {self.reason}"


def find_damage(survey: LogSurvey, mark: Mark | None, newest: CheckpointId | None) -> Damage | None:
    """The damage that makes the log unusable, None where there is none. ``newest``: the newest usable checkpoint."""
    promised = mark.durable_end if mark is not None else 0
    is_covered = newest is not None and newest.end_offset >= promised
    bad = survey.bad
    if bad is not None:
        base = survey.segments[survey.bad_segment][0]
        path = survey.path(base)
        if survey.is_corrupt and not (survey.lacks_pages and mark is not None):
            return Damage(path, bad.position, bad.offset, f"{bad.reason}; no write that was cut short looks so", base)
        if bad.offset < promised and not is_covered:
            return Damage(path, bad.position, bad.offset, f"{bad.reason}; promised up to {promised}", base)
    if survey.end_offset < promised and not is_covered:
        return _whole_file(survey, survey.end_offset, f"the log ends here, but was promised up to {promised}", False)
    return _missing_history(survey, newest) or _contradiction(survey, mark, newest)


def _missing_history(survey: LogSurvey, newest: CheckpointId | None) -> Damage | None:
    if not survey.segments or survey.first_base == 0:
        return None
    if newest is None:
        return _whole_file(survey, 0, "what was before it is missing, and no usable checkpoint covers it", True)
    if newest.end_offset < survey.first_base:
        reason = f"what lies between the newest checkpoint, {newest.end_offset}, and it is missing"
        return _whole_file(survey, newest.end_offset, reason, True)
    return None


def _contradiction(survey: LogSurvey, mark: Mark | None, newest: CheckpointId | None) -> Damage | None:
    """The log against what the mark says about it, where no CRC would tell."""
    if mark is None or survey.end_offset < mark.durable_end:
        return None
    if newest is not None and not survey.holds(newest) and newest.end_offset < mark.commit:
        reason = f"it does not hold epoch {newest.epoch} at the checkpoint's end, though more was committed"
        return _whole_file(survey, newest.end_offset, reason, True)
    epoch = survey.epoch_at(mark.durable_end)
    is_told = mark.durable_end > survey.first_base and not _is_of_a_checkpoint(survey, mark, newest)
    if is_told and epoch != mark.durable_epoch:
        reason = f"epoch {epoch} ends where epoch {mark.durable_epoch} was promised"
        return _at_offset(survey, mark.durable_end, reason)
    return None


def _is_of_a_checkpoint(survey: LogSurvey, mark: Mark, newest: CheckpointId | None) -> bool:
    """Whether the mark may speak of a checkpoint that took the log's place, while the log is still there.

    It says so before the first segment goes. Further checkpoints may have been installed since it was noted which
    one: then the newest ends beyond the mark, and the log that it was to take the place of does not hold it.
    """
    if newest is None or newest.end_offset < mark.durable_end:
        return False
    return newest.end_offset == mark.durable_end or not survey.holds(newest)


def _whole_file(survey: LogSurvey, offset: int, reason: str, is_bad: bool) -> Damage:
    """Damage that lies in no batch: it is told of the first segment if that cannot stay, else of the last."""
    if not survey.segments:
        return Damage(survey.directory, 0, offset, reason, None)
    base, size = survey.segments[0 if is_bad else -1]
    return Damage(survey.path(base), 0 if is_bad else size, offset, reason, base if is_bad else None)


def _at_offset(survey: LogSurvey, end_offset: int, reason: str) -> Damage:
    """Damage in the batch that should end at an offset within the log."""
    index = survey.entries.containing(end_offset - 1)
    offset = survey.entries.base_of(index)
    base = max(base for base, _ in survey.segments if base <= offset)
    return Damage(survey.path(base), survey.entries.position_of(index), offset, reason, base)
