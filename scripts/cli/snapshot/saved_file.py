"""The file of a saved checkpoint: written beside its name, synced, read back and checked whole, and only then named."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_id
from quorate.metadata_log.checkpoints.saved_checkpoint import CountedContent, SavedCheckpoint, encode_trailer
from quorate.metadata_log.disk import PART_SUFFIX, RealDisk
from quorate.metadata_log.errors import QuorateError, StorageError
from quorate.metadata_log.regular_files import open_regular
from quorate.metadata_log.segments.segment_files import segment_base
from quorate.scripts.cli.snapshot.saving import TakenState
from quorate.scripts.cli.snapshot.verification import CheckpointVerdict, CheckpointVerification
from quorate.snapshots.checkpoints.checkpoint import checkpoint_chunks
from quorate.snapshots.pauses import no_pause

_MODE: Final = 0o600


class NotWritten(QuorateError):
    """A file that cannot be made, or is not what it should be. What has its name is as it was."""


class Part:
    """A file on its way: for its owner alone, and locked, under ``part_path``. See ``part_of``."""

    def __init__(self, stream: BinaryIO, file: Path, *, may_replace: bool) -> None:
        self.stream = stream
        self.file = file
        self.path = part_path(file)
        self._may_replace = may_replace
        self.is_named = False

    def take_name(self) -> None:
        """Give it its name.

        Raises:
            NotWritten: something has it by now. OSError: the disk fails.
        """
        if not self._may_replace:
            refuse_existing(self.file)
        os.replace(self.path, self.file)
        self.is_named = True
        RealDisk().sync_directory(str(self.file.parent))


@contextmanager
def part_of(file: Path, *, may_replace: bool) -> Iterator[Part]:
    """An empty file that is to become ``file``, and goes at the end of the block where it has not.

    Raises:
        NotWritten: ``file`` is there, and may not be replaced; its name is that of a file of a log; another process is
            writing it; or the disk refuses.
    """
    if checkpoint_id(file.name) is not None or segment_base(file.name) is not None:
        raise NotWritten(f"{file}: this is the name of a file in a metadata directory: choose another one")
    if not may_replace:
        refuse_existing(file)
    try:
        stream = _locked(part_path(file))
    except OSError as error:
        raise NotWritten(f"{file} cannot be written: {_reason(part_path(file), error)}") from error
    with stream:
        part = Part(stream, file, may_replace=may_replace)
        try:
            yield part
        finally:
            if not part.is_named:
                part.path.unlink(missing_ok=True)


def part_path(file: Path) -> Path:
    """The path under which a file is written before it has its name."""
    return file.with_name(file.name + PART_SUFFIX)


def discard_part(path: Path) -> None:
    """Remove a part that a run which was cut short has left; one that is being written stays.

    Raises:
        OSError: it is not this user's, or the disk refuses.
    """
    try:
        with _locked(path):
            path.unlink()
    except BlockingIOError:
        return


def refuse_existing(file: Path) -> None:
    """Refuse to write over a file.

    Raises:
        NotWritten: it is there.
    """
    if os.path.lexists(file):
        raise NotWritten(f"{file} is there already: choose another name, or say --force")


def _locked(path: Path) -> BinaryIO:
    """A part, empty: that of a run which was cut short is taken over; what another run writes now is not."""
    descriptor = open_regular(str(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, _MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held, named = os.fstat(descriptor), os.stat(path, follow_symlinks=False)
        if held.st_ino != named.st_ino:
            raise BlockingIOError(errno.EWOULDBLOCK, "was renamed meanwhile")
        if held.st_uid != os.geteuid() or held.st_nlink != 1:
            raise PermissionError(errno.EPERM, f"{path} is there already, and is not this user's alone")
        os.fchmod(descriptor, _MODE)
        os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "r+b")


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        return f"another process is writing {path}"
    return error.strerror or str(error)


def write_saved(part: Part, taken: TakenState, now_ms: int) -> SavedCheckpoint:
    """Write a state, check what the disk has of it, and give it its name.

    Raises:
        NotWritten: the disk fails, or does not give back what was written.
    """
    try:
        saved = _write(part.stream, taken, now_ms)
        _check(part, saved)
        part.take_name()
    except OSError as error:
        why = error.strerror or str(error)
        raise NotWritten(f"{part.file} cannot be written: {why}; nothing is left of it") from error
    return saved


def _write(stream: BinaryIO, taken: TakenState, now_ms: int) -> SavedCheckpoint:
    content = CountedContent()
    for chunk in checkpoint_chunks(taken.image, taken.image.provenance.log_time_ms, no_pause):
        stream.write(chunk)
        content.add(chunk)
    provenance, source = taken.image.provenance, taken.source
    saved = SavedCheckpoint(
        id=CheckpointId(provenance.end_offset, provenance.epoch),
        size=content.size,
        crc=content.crc,
        digest=taken.digest.value,
        cluster_id=source.cluster_id,
        generation=source.generation,
        saved_ms=now_ms,
    )
    stream.write(encode_trailer(saved))
    stream.flush()
    os.fsync(stream.fileno())
    return saved


def _check(part: Part, saved: SavedCheckpoint) -> None:
    verdict = verify_saved(part.path)
    if not verdict.is_sound or verdict.digest != saved.digest.hex():
        found = "; ".join(verdict.findings) or f"its content has the digest {verdict.digest}"
        raise NotWritten(f"{part.file}: the disk does not give back what was written: {found}; nothing is left of it")


def verify_saved(file: Path) -> CheckpointVerdict:
    """The findings in one saved checkpoint.

    Raises:
        StorageError: it is none, or cannot be read.
    """
    verification = CheckpointVerification(file)
    (verdict,) = verification.run(lambda _: None)
    if verdict.cluster_id is None:
        raise StorageError(f"{file}: does not end as a saved checkpoint does")
    return verdict
