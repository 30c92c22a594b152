"""A survey of one metadata directory, read without changing a byte: its log, its vote, its checkpoints, its damage."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from quorate.metadata_log.checkpoints.checkpoint_files import (
    BOOTSTRAP_ID,
    CheckpointId,
    CheckpointSurvey,
    checkpoint_name,
    manifest_name,
    survey_checkpoints,
)
from quorate.metadata_log.directory.directory import BALLAST_NAME, LOCK_NAME, LOG_DIRECTORY_NAME
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, MetaProperties, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, decode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptState, QuorateError
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.log.recovery_survey import LogSurvey
from quorate.metadata_log.log.recovery_verdict import find_damage
from quorate.metadata_log.segments.mark import Mark, read_mark
from quorate.metadata_log.segments.segment_files import list_segments, segment_name
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image

_READ_BYTES: Final = 1024 * 1024
#: Files of no meaning for what a directory holds.
_INDIFFERENT: Final = frozenset({LOCK_NAME, BALLAST_NAME})


class SurveyPart(BaseModel):
    """A piece of a survey or plan as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EpochStart(SurveyPart):
    """The begin of an epoch in a log."""

    epoch: int
    start_offset: int


class HeldCheckpoint(SurveyPart):
    """A checkpoint that is whole."""

    end_offset: int
    epoch: int
    size: int

    @property
    def id(self) -> CheckpointId:
        return CheckpointId(self.end_offset, self.epoch)


class SurveyedDirectory(SurveyPart):
    """The log and state of one directory that a quorum could be founded on. Offsets are record offsets, ends
    exclusive.
    """

    path: str
    #: None of these three where nothing says whose directory it is.
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    generation: int = Field(ge=0)
    #: Whether a process holds it: what it holds then moves on.
    is_in_use: bool
    #: Epoch of the election state; None: there is none, and the node has no right to vote.
    vote_epoch: int | None
    #: What is sound, from the log's start to its end; where a checkpoint has overtaken the log both are its end.
    start_offset: int
    end_offset: int
    end_epoch: int
    #: Milliseconds since 1970 of the last record that counts.
    end_time_ms: int
    #: Known there to be committed, and synced; None where no mark is, as in Kafka's directories.
    commit: int | None
    durable_end: int | None
    epochs: tuple[EpochStart, ...]
    #: First offset of the oldest segment that is sound and reaches the end; None: the newest checkpoint is all.
    first_segment: int | None
    #: Whole ones that hold state, ascending.
    checkpoints: tuple[HeldCheckpoint, ...]
    #: Of the state that it adds up to; None where it adds up to none.
    digest: str | None
    #: End of the state: before the end inside a transaction.
    state_offset: int
    kraft_version: int
    #: Ids as far as the log or the election state tells them.
    voters: tuple[int, ...]
    topics: int
    partitions: int
    #: What is wrong with it, a sentence each; torn tails are not.
    damage: tuple[str, ...]
    #: Of the content of all its files.
    fingerprint: str

    @property
    def is_intact(self) -> bool:
        """Whether it remembers all that its node ever promised."""
        return not self.damage and self.vote_epoch is not None and self.digest is not None

    @property
    def name(self) -> str:
        """For sentences."""
        return f"{self.path} (node {'unknown' if self.node_id is None else self.node_id})"


def survey_directory(path: Path) -> SurveyedDirectory:
    """Look into a metadata directory, or a copy of one.

    Raises:
        RecoveryError: there is no such directory, or no metadata log in it.
        OSError: it cannot be read.
    """
    if not is_metadata_directory(path):
        raise RecoveryError(f"{path}: no metadata directory, it has no {LOG_DIRECTORY_NAME}")
    return _Look(path, path / LOG_DIRECTORY_NAME).holding()


def is_metadata_directory(path: Path) -> bool:
    """Whether a directory looks like one of a controller."""
    return (path / LOG_DIRECTORY_NAME).is_dir()


def local_directories(local: Path, cluster: ClusterPlan) -> list[Path]:
    """Those of a local cluster's controllers that are there."""
    paths = (controller_directory(local, controller) for controller in cluster.controllers)
    return [path for path in paths if is_metadata_directory(path)]


@dataclass(slots=True)
class _Sound:
    """The part of a log that is sound to its end."""

    start_offset: int
    end: CheckpointId
    epochs: tuple[EpochStart, ...]
    first_segment: int | None


class _Look:
    """One look at one directory."""

    def __init__(self, path: Path, log_path: Path) -> None:
        self._path = path
        self._log_path = str(log_path)
        self._disk = RealDisk()
        self._damage: list[str] = []

    def holding(self) -> SurveyedDirectory:
        is_in_use = self._is_in_use()
        meta, state, mark = self._meta(), self._state(), self._mark()
        checkpoints = survey_checkpoints(self._disk, self._log_path)
        self._damage += [str(error) for error in checkpoints.damaged]
        sound = self._sound(checkpoints, mark)
        image = self._image(sound)
        return SurveyedDirectory(
            path=str(self._path),
            cluster_id=None if meta is None else meta.cluster_id,
            node_id=None if meta is None else meta.node_id,
            directory_id=None if meta is None else uuid_text(meta.directory_id),
            generation=0 if meta is None else meta.generation,
            is_in_use=is_in_use,
            vote_epoch=None if state is None else state.leader_epoch,
            start_offset=sound.start_offset,
            end_offset=sound.end.end_offset,
            end_epoch=sound.end.epoch,
            end_time_ms=0 if image is None else image.provenance.log_time_ms,
            commit=None if mark is None else mark.commit,
            durable_end=None if mark is None else mark.durable_end,
            epochs=sound.epochs,
            first_segment=sound.first_segment,
            checkpoints=tuple(
                HeldCheckpoint(end_offset=info.id.end_offset, epoch=info.id.epoch, size=info.size)
                for info in checkpoints.usable
                if info.id != BOOTSTRAP_ID
            ),
            digest=None if image is None else digest_image(image).text,
            state_offset=0 if image is None else image.provenance.end_offset,
            kraft_version=0 if image is None else image.kraft.version,
            voters=_voters(image, state),
            topics=0 if image is None else len(image.topics),
            partitions=0 if image is None else len(image.partitions),
            damage=tuple(self._damage),
            fingerprint=fingerprint(self._path),
        )

    # --- the small files -----------------------------------------------------------------------------

    def _is_in_use(self) -> bool:
        lock = self._path / LOCK_NAME
        if not lock.exists():
            return False
        try:
            self._disk.lock(str(lock)).release()
        except BlockingIOError:
            return True
        except OSError:
            return False  # a copy on a medium that is read only
        return False

    def _meta(self) -> MetaProperties | None:
        path = self._path / META_PROPERTIES_NAME
        try:
            return decode_meta_properties(path.read_bytes(), str(path))
        except FileNotFoundError:
            self._damage.append(f"{path} is missing")
        except CorruptState as error:
            self._damage.append(str(error))
        return None

    def _state(self) -> QuorumState | None:
        path = Path(self._log_path) / QUORUM_STATE_NAME
        try:
            return decode_quorum_state(path.read_bytes(), str(path))
        except FileNotFoundError:
            return None
        except CorruptState as error:
            self._damage.append(str(error))
        return None

    def _mark(self) -> Mark | None:
        try:
            return read_mark(self._disk, self._log_path)
        except CorruptState as error:
            self._damage.append(str(error))
        return None

    # --- the log -------------------------------------------------------------------------------------

    def _sound(self, checkpoints: CheckpointSurvey, mark: Mark | None) -> _Sound:
        bases = list_segments(self._disk, self._log_path)
        whole = LogSurvey(self._disk, self._log_path, bases)
        whole.read()
        newest = checkpoints.usable[-1].id if checkpoints.usable else None
        damage = find_damage(whole, mark, newest)
        if damage is not None:
            self._damage.append(str(damage))
        survey = self._behind_damage(whole, bases, newest)
        if newest is not None and (newest.end_offset > survey.end_offset or not survey.holds(newest)):
            return _Sound(newest.end_offset, newest, (), None)
        first = survey.first_base if survey.segments else None
        return _Sound(survey.first_base, CheckpointId(survey.end_offset, survey.last_epoch), _epochs(survey), first)

    def _behind_damage(self, whole: LogSurvey, bases: list[int], newest: CheckpointId | None) -> LogSurvey:
        """The log behind a checkpoint, if it is sound: the part that the checkpoint covers may be damaged."""
        if whole.bad is None or newest is None or whole.end_offset >= newest.end_offset:
            return whole
        before = [base for base in bases if base <= newest.end_offset]
        tail = LogSurvey(self._disk, self._log_path, before[-1:] + bases[len(before) :])
        tail.read()
        return tail if tail.end_offset >= newest.end_offset and tail.holds(newest) else whole

    def _image(self, sound: _Sound) -> MetadataImage | None:
        if not sound.end.end_offset:
            return EMPTY_IMAGE
        try:
            return load_image(self._path, sound.end.end_offset)
        except QuorateError as error:
            self._damage.append(f"its state cannot be made: {error}")
        return None


def _epochs(survey: LogSurvey) -> tuple[EpochStart, ...]:
    entries = survey.entries
    found = []
    index = 0
    while index < len(entries):
        epoch = entries.epoch_of(index)
        found.append(EpochStart(epoch=epoch, start_offset=entries.base_of(index)))
        index = entries.first_of_epoch_above(epoch)
    return tuple(found)


def _voters(image: MetadataImage | None, state: QuorumState | None) -> tuple[int, ...]:
    if image is not None and image.kraft.voters is not None:
        return tuple(sorted(voter.voter_id for voter in image.kraft.voters.voters))
    return () if state is None else tuple(sorted(state.current_voters))


def fingerprint(path: Path) -> str:
    """Of names and contents of all files that mean something, or of one file's content, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    files = [path] if path.is_file() else path.rglob("*")
    for file in sorted(file for file in files if file.is_file() and file.name not in _INDIFFERENT):
        name = str(file.relative_to(path)).encode()
        digest.update(b"%d %d " % (len(name), file.stat().st_size) + name)
        with file.open("rb") as stream:
            while data := stream.read(_READ_BYTES):
                digest.update(data)
    return digest.hexdigest()


def survey_kept(holding: SurveyedDirectory) -> LogSurvey:
    """The segments again that count; they are not changed by it."""
    disk, directory = RealDisk(), str(Path(holding.path) / LOG_DIRECTORY_NAME)
    bases = [base for base in list_segments(disk, directory) if base >= (holding.first_segment or 0)]
    survey = LogSurvey(disk, directory, bases)
    survey.read()
    return survey


def log_files(holding: SurveyedDirectory) -> list[tuple[Path, int]]:
    """The files that a new directory with the same content is made of, and how many bytes of each count.

    The newest segment ends where the sound part does: a torn tail, or what is damaged, stays behind.
    """
    directory = Path(holding.path) / LOG_DIRECTORY_NAME
    names = [name(held.id) for held in holding.checkpoints for name in (checkpoint_name, manifest_name)]
    files = [(directory / name, (directory / name).stat().st_size) for name in names if (directory / name).exists()]
    if holding.first_segment is None:
        return files
    survey = survey_kept(holding)
    for index, (base, size) in enumerate(survey.segments):
        is_bad = survey.bad is not None and index == survey.bad_segment
        sound = survey.bad.position if survey.bad is not None and is_bad else size
        if sound:
            files.append((directory / segment_name(base), sound))
        if is_bad:
            break
    return files
