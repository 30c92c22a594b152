"""The state that a new cluster starts from, out of another one's files, and what of those files is left behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, MetaProperties, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, decode_quorum_state
from quorate.metadata_log.directory.reader import LogFile, find_files, iter_batches
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptBatch, CorruptState
from quorate.metadata_log.segments.mark import read_mark
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import MetadataImage


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """The records that the source has behind the state that is taken."""

    #: Records of the log behind it, as far as the log can be read.
    records: int
    #: Exclusive end of them.
    end_offset: int
    #: Checkpoints of later states.
    checkpoints: int
    #: Why the log could not be read to its end; empty where it could.
    damage: str


@dataclass(frozen=True, slots=True)
class SourceState:
    """A state, and what has to be known of where it comes from."""

    image: MetadataImage
    #: The highest epoch of which there is a trace in the source, also behind the state.
    highest_epoch: int
    #: Whose directory the source is; None where no `meta.properties` says it.
    meta: MetaProperties | None
    #: Whose state it is, and the number of times that its quorum was rebuilt (``MetaProperties.generation``), by
    #: that file or a saved checkpoint's trailer. None and 0 where neither is there.
    cluster_id: str | None
    generation: int
    left: LeftBehind
    #: Checkpoints that the state would have begun with, and that are not whole.
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def next_epoch(self) -> int:
        """Above everything that the source knows of: nobody there voted or led in it."""
        return self.highest_epoch + 1


def read_source(source: Path, at: Moment | None) -> SourceState:
    """The state at a moment (None: the newest), and what lies behind it.

    Raises:
        StorageError, ReplayError, ImageNotAvailable: as ``load_image``.
    """
    passed_over: list[PassedOver] = []
    image = load_image(source, at, passed_over.append)
    end = image.provenance.end_offset
    files = find_files(source)
    left, tail_epoch = _behind(files, end)
    state = source_quorum_state(source)
    epochs = [image.provenance.epoch, tail_epoch, *(file.epoch or 0 for file in files if file.is_checkpoint)]
    highest = max(*epochs, 0 if state is None else state.leader_epoch)
    meta = _meta_properties(source)
    owner = meta or files[0].saved
    cluster_id, generation = (None, 0) if owner is None else (owner.cluster_id, owner.generation)
    return SourceState(image, highest, meta, cluster_id, generation, left, tuple(passed_over))


def known_commit(source: Path) -> int | None:
    """Up to where the source's node knew its log to be committed; None where nothing says it."""
    directory = _log_directory(source)
    try:
        mark = None if directory is None else read_mark(RealDisk(), str(directory))
    except CorruptState:
        return None
    return None if mark is None else mark.commit


def _behind(files: list[LogFile], end: int) -> tuple[LeftBehind, int]:
    """The records after an offset, and the log's last epoch. Epochs never fall: only the end of a log is read."""
    segments = [file for file in files if not file.is_checkpoint]
    ends = [*(file.offset or 0 for file in segments[1:]), end + 1]
    reaching = [segment for segment, segment_end in zip(segments, ends, strict=False) if segment_end > end]
    records = epoch = 0
    reached, damage = end, ""
    try:
        for segment in reaching:
            for batch in iter_batches(segment):
                header = batch.header
                epoch = header.epoch
                if header.end_offset > end:
                    records += header.end_offset - max(header.base_offset, end)
                    reached = header.end_offset
    except CorruptBatch as error:
        damage = str(error)
    later = sum(1 for file in files if file.is_checkpoint and (file.offset or 0) > end)
    return LeftBehind(records, reached, later, damage), epoch


def _log_directory(source: Path) -> Path | None:
    """The directory of the source's log files."""
    if source.is_dir():
        inner = source / LOG_DIRECTORY_NAME
        return inner if inner.is_dir() else source
    return None


def source_quorum_state(source: Path) -> QuorumState | None:
    """The election state that the source's node must not forget; None where it is not there, or cannot be read."""
    directory = _log_directory(source)
    path = None if directory is None else directory / QUORUM_STATE_NAME
    if path is None or not path.is_file():
        return None
    try:
        return decode_quorum_state(path.read_bytes(), str(path))
    except CorruptState:
        return None  # the log's own epochs are a lower bound, and the only thing that is needed


def source_cluster_id(source: Path) -> str | None:
    """The cluster that the source belongs to, as far as it says so."""
    owner = _meta_properties(source) or find_files(source)[0].saved
    return None if owner is None else owner.cluster_id


def _meta_properties(source: Path) -> MetaProperties | None:
    directory = _log_directory(source)
    for place in () if directory is None else (directory, directory.parent):
        path = place / META_PROPERTIES_NAME
        if path.is_file():
            return decode_meta_properties(path.read_bytes(), str(path))
    return None
