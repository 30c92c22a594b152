"""A node's metadata directory: formatting it, opening it, and every way it can be the wrong one.

Layout, Kafka's::

    meta.properties                    cluster, node and directory id; written last: with it the directory is formatted
    bootstrap.checkpoint               records that the first leader writes at the head of the log
    .lock                              held while a process uses the directory
    ballast                            ours: 1 MiB to let go of when the disk is full
    __cluster_metadata-0/              segments, checkpoints, quorum-state, ...

Formatting is explicit. Only ``FormatPlan.quorum_state`` makes a voter: see ``quorum_state``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from quorate.metadata_log.batches.batch import control_batch, place_batch
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, checkpoint_name
from quorate.metadata_log.directory.meta_properties import (
    META_PROPERTIES_NAME,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.disk import PART_SUFFIX, Disk, DiskLock, OpenMode, read_file, remove_file, replace_file
from quorate.metadata_log.errors import CorruptState, StorageError
from quorate.metadata_log.ids import METADATA_TOPIC_ID, uuid_text
from quorate.metadata_log.records.records import (
    KRaftVersionRecord,
    Record,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

LOG_DIRECTORY_NAME: Final = "__cluster_metadata-0"
BOOTSTRAP_NAME: Final = "bootstrap.checkpoint"
LOCK_NAME: Final = ".lock"
BALLAST_NAME: Final = "ballast"
#: Enough for the small files that a start writes: mark, leader epochs, quorum-state.
BALLAST_BYTES: Final = 1024 * 1024
#: The ballast is put back only when this much is free, so that it does not fill the disk it protects from being full.
_ROOMY_BYTES: Final = 64 * BALLAST_BYTES
#: There from the first change to the last while a directory is being formatted.
_FORMATTING_NAME: Final = "formatting"
#: What may be in a directory that is otherwise empty.
_NOT_OURS: Final = frozenset({LOCK_NAME, "lost+found"})
_PARTITION_METADATA_NAME: Final = "partition.metadata"
#: Not formatting: a directory made as those of a new cluster would vote, and have forgotten what it promised.
_JOIN_AGAIN: Final = "a controller that lost its directory gets one that joins the others by: quorate recover rejoin"
_MAKE: Final = f"in a cluster that never ran it is made by: quorate format directory; {_JOIN_AGAIN}"


class DirectoryError(StorageError):
    """A directory cannot be used. Says which, why, and what to do."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


class NotFormatted(DirectoryError):
    """Nothing was ever formatted there, or formatting was interrupted."""


class AlreadyFormatted(DirectoryError):
    """Formatting would throw away what is there."""


class ForeignDirectory(DirectoryError):
    """It belongs to another node, another cluster, or to something else."""


class DamagedDirectory(DirectoryError):
    """It was formatted, and cannot be understood any more."""


class DirectoryInUse(DirectoryError):
    """Another process has it."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file for the log directory of a cluster that starts from another's metadata."""

    name: str
    #: Called once for every directory that is formatted.
    read: Callable[[], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """The identity and content that a directory is to be given."""

    meta: MetaProperties
    #: Content of ``bootstrap.checkpoint``; None when the log that is imported has those records already.
    bootstrap: bytes | None
    #: Content of ``0-0.checkpoint``, the first voter set (``voters_checkpoint``); None with kraft.version 0.
    voters: bytes | None
    #: For a founding voter the state it begins with; None for a node that joins later, which then has no vote.
    quorum_state: QuorumState | None
    imported: tuple[ImportedFile, ...] = field(default=())
    #: Not for a directory that is for Kafka.
    has_ballast: bool = True


def voters_checkpoint(voters: VotersRecord, timestamp_ms: int) -> bytes:
    """The ``0-0.checkpoint`` of a fresh cluster at kraft.version 1: its first voter set, and no state.

    ``timestamp_ms``, since 1970, is also its newest record's, by which retention goes (Kafka's ``Formatter``).
    """
    head: list[tuple[Record, int]] = [
        (SnapshotHeaderRecord(timestamp_ms), 0),
        (KRaftVersionRecord(kraft_version=1), 0),
        (voters, 0),
    ]
    first = control_batch(head, timestamp_ms)
    last = control_batch([(SnapshotFooterRecord(), 0)], timestamp_ms)
    return place_batch(first, 0, BOOTSTRAP_ID.epoch) + place_batch(last, len(head), BOOTSTRAP_ID.epoch)


def is_formatted(disk: Disk, path: str) -> bool:
    """Whether formatting ran to its end there."""
    return disk.exists(f"{path}/{META_PROPERTIES_NAME}")


def format_directory(disk: Disk, path: str, plan: FormatPlan) -> None:
    """Make ``path``, which may not exist yet (its parent must), a node's metadata directory. Blocking.

    A crash leaves a directory that is formatted, or one that can be formatted anew.

    Raises:
        AlreadyFormatted: it is. ForeignDirectory: it holds something else. DirectoryInUse: a process has it.
        OSError: the disk failed.
    """
    if not disk.exists(path):
        disk.make_directory(path)
    # Even if it was there: whoever made it may have been killed before this.
    disk.sync_directory(_parent(path))
    _check_formattable(disk, path)
    lock = _lock(disk, path)
    try:
        _clear_interrupted(disk, path)
        _write(disk, path, _FORMATTING_NAME, b"")
        _fill(disk, path, plan)
        _write(disk, path, META_PROPERTIES_NAME, encode_meta_properties(plan.meta))
        _remove_marker(disk, path)
    finally:
        lock.release()


def _check_formattable(disk: Disk, path: str) -> None:
    names = set(disk.list_directory(path)) - _NOT_OURS - {_FORMATTING_NAME + PART_SUFFIX}
    if META_PROPERTIES_NAME in names:
        raise _already_formatted(disk, path)
    if names and _FORMATTING_NAME not in names:
        raise ForeignDirectory(
            path, f"holds {min(names)!r} but no {META_PROPERTIES_NAME}", "move that away, or name another directory"
        )


def _already_formatted(disk: Disk, path: str) -> AlreadyFormatted:
    """The refusal of a directory that belongs to a node already; names the node where the directory does."""
    meta_path = f"{path}/{META_PROPERTIES_NAME}"
    try:
        meta = decode_meta_properties(read_file(disk, meta_path), meta_path)
    except CorruptState as error:
        problem = f"is formatted already, and says not for whom ({META_PROPERTIES_NAME}: {error.reason})"
        return AlreadyFormatted(path, problem, "restore that file, or move the directory away")
    whose = f"for node {meta.node_id} of cluster {meta.cluster_id}, as directory {uuid_text(meta.directory_id)}"
    return AlreadyFormatted(path, f"is formatted already, {whose}", "start the node with it")


def _clear_interrupted(disk: Disk, path: str) -> None:
    """Remove what a formatting that was interrupted had made."""
    log_directory = f"{path}/{LOG_DIRECTORY_NAME}"
    if disk.exists(log_directory):
        for name in disk.list_directory(log_directory):
            disk.unlink(f"{log_directory}/{name}")
    for name in set(disk.list_directory(path)) - _NOT_OURS - {LOG_DIRECTORY_NAME, _FORMATTING_NAME}:
        disk.unlink(f"{path}/{name}")


def _fill(disk: Disk, path: str, plan: FormatPlan) -> None:
    log_directory = f"{path}/{LOG_DIRECTORY_NAME}"
    if not disk.exists(log_directory):
        disk.make_directory(log_directory)
    if plan.has_ballast:
        _write(disk, path, BALLAST_NAME, bytes(BALLAST_BYTES))
    if plan.bootstrap is not None:
        _write(disk, path, BOOTSTRAP_NAME, plan.bootstrap)
    topic = f"version: 0\ntopic_id: {uuid_text(METADATA_TOPIC_ID)}"
    _write(disk, log_directory, _PARTITION_METADATA_NAME, topic.encode())
    if plan.voters is not None:
        _write(disk, log_directory, checkpoint_name(BOOTSTRAP_ID), plan.voters)
    for file in plan.imported:
        _copy(disk, f"{log_directory}/{file.name}", file.read())
    if plan.quorum_state is not None:
        _write(disk, log_directory, QUORUM_STATE_NAME, encode_quorum_state(plan.quorum_state))
    disk.sync_directory(log_directory)


class MetadataDirectory:
    """A formatted directory that this process holds. Made by ``open``."""

    def __init__(self, path: str, meta: MetaProperties, lock: DiskLock, *, is_short_of_space: bool) -> None:
        self.path = path
        self.meta = meta
        self.log_path = f"{path}/{LOG_DIRECTORY_NAME}"
        #: Whether the ballast was let go of, or could not be put back. Say so: the node will stop when it writes much.
        self.is_short_of_space = is_short_of_space
        self._lock = lock

    @classmethod
    def open(
        cls, disk: Disk, path: str, node_id: int | None = None, cluster_id: str | None = None
    ) -> MetadataDirectory:
        """Hold ``path`` and check that it is a directory of this node and cluster, where they are given. Blocking.

        Raises:
            NotFormatted, ForeignDirectory, DamagedDirectory, DirectoryInUse: as they say.
            OSError: the disk failed.
        """
        if not is_formatted(disk, path):
            raise _unformatted(disk, path)
        lock = _lock(disk, path)
        try:
            meta = _checked_meta(disk, path, node_id, cluster_id)
            # Formatting may have been killed before its last sync: no vote may rest on names that could still go.
            _remove_marker(disk, path)
            return cls(path, meta, lock, is_short_of_space=not _settle_ballast(disk, path))
        except BaseException:
            lock.release()
            raise

    def bootstrap(self, disk: Disk) -> bytes | None:
        """Content of ``bootstrap.checkpoint``, None when there is none."""
        path = f"{self.path}/{BOOTSTRAP_NAME}"
        return read_file(disk, path) if disk.exists(path) else None

    def close(self) -> None:
        """Let another process have it."""
        self._lock.release()


def _unformatted(disk: Disk, path: str) -> DirectoryError:
    if not disk.exists(path):
        return NotFormatted(path, "does not exist", _MAKE)
    names = set(disk.list_directory(path))
    if _FORMATTING_NAME in names:
        return NotFormatted(path, "was being formatted when that was interrupted", "repeat the command that made it")
    if LOG_DIRECTORY_NAME in names:
        problem = f"holds a metadata log but no {META_PROPERTIES_NAME}"
        return DamagedDirectory(path, problem, f"restore {META_PROPERTIES_NAME}, or move all away: then {_JOIN_AGAIN}")
    return NotFormatted(path, "is not formatted", _MAKE)


def _checked_meta(disk: Disk, path: str, node_id: int | None, cluster_id: str | None) -> MetaProperties:
    meta_path = f"{path}/{META_PROPERTIES_NAME}"
    try:
        meta = decode_meta_properties(read_file(disk, meta_path), meta_path)
    except CorruptState as error:
        remedy = f"restore that file, or move the directory away: then {_JOIN_AGAIN}"
        raise DamagedDirectory(path, f"{META_PROPERTIES_NAME}: {error.reason}", remedy) from error
    if not disk.exists(f"{path}/{LOG_DIRECTORY_NAME}"):
        raise DamagedDirectory(path, f"has no {LOG_DIRECTORY_NAME}", f"remove the directory: then {_JOIN_AGAIN}")
    if cluster_id is not None and meta.cluster_id != cluster_id:
        problem = f"belongs to cluster {meta.cluster_id}, not to {cluster_id}"
        raise ForeignDirectory(path, problem, "start the node with its own directory")
    if node_id is not None and meta.node_id != node_id:
        problem = f"belongs to node {meta.node_id}, not to node {node_id}"
        raise ForeignDirectory(path, problem, "start the node with its own directory")
    return meta


def _settle_ballast(disk: Disk, path: str) -> bool:
    """Let go of the ballast on a full disk, put it back on a roomy one; whether it is there afterwards."""
    has_ballast = disk.exists(f"{path}/{BALLAST_NAME}")
    free = disk.free_bytes(path)
    if has_ballast and free < BALLAST_BYTES:
        disk.unlink(f"{path}/{BALLAST_NAME}")
        disk.sync_directory(path)
        return False
    if not has_ballast and free >= _ROOMY_BYTES:
        _write(disk, path, BALLAST_NAME, bytes(BALLAST_BYTES))
        return True
    return has_ballast


def _remove_marker(disk: Disk, path: str) -> None:
    """Formatting is over, durably."""
    for _ in remove_file(disk, f"{path}/{_FORMATTING_NAME}"):
        pass
    disk.sync_directory(path)


def _lock(disk: Disk, path: str) -> DiskLock:
    try:
        return disk.lock(f"{path}/{LOCK_NAME}")
    except BlockingIOError as error:
        raise DirectoryInUse(path, "is in use by another process", "stop that one first") from error


def _write(disk: Disk, directory: str, name: str, data: bytes) -> None:
    for _ in replace_file(disk, directory, name, data):
        pass


def _copy(disk: Disk, path: str, chunks: Iterable[bytes]) -> None:
    file = disk.open_file(path, OpenMode.CREATE)
    try:
        position = 0
        for chunk in chunks:
            file.pwrite(chunk, position)
            position += len(chunk)
        file.sync()
    finally:
        file.close()


def _parent(path: str) -> str:
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or slash or "."
