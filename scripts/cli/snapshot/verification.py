"""The checks of `quorate snapshot verify`: a checkpoint's file, its content, its manifest, and the log beside it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, check_checkpoint, manifest_name
from quorate.metadata_log.checkpoints.checkpoint_manifest import decode_manifest
from quorate.metadata_log.checkpoints.saved_checkpoint import CountedContent
from quorate.metadata_log.directory.reader import LogFile, find_files, iter_batches
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptBatch, CorruptCheckpoint, CorruptState, StorageError
from quorate.scripts.cli.logs.log_verification import LogVerification, total_bytes
from quorate.snapshots.image.invariants import broken_rules
from quorate.snapshots.image_digest import digest_image

#: Most sentences about broken rules of one state: where one is broken, thousands may be.
_BROKEN_MAX: Final = 10
_NO_CHECKPOINT: Final = "is no checkpoint: it neither begins as one does, nor has the name of one (*.checkpoint)"

ManifestVerdict = Literal["same", "none", "damaged", "different", "unknown"]
LogVerdict = Literal["same", "different", "out-of-reach"]


class CheckpointVerdict(BaseModel):
    """The findings in one checkpoint, in the output for programs. Every field is always there."""

    model_config = ConfigDict(frozen=True)

    path: str
    #: Exclusive; None where the name does not tell.
    end_offset: int | None
    epoch: int | None
    #: The cluster that it was saved from, by its trailer; None for one without, as those in metadata directories.
    cluster_id: str | None
    #: When it was saved, milliseconds since 1970; None as before.
    saved_ms: int | None
    size: int
    #: Of the state that the content adds up to; None where it adds up to none.
    digest: str | None
    #: Whether the manifest's digest, or the trailer's, is that; `none`: there is none; `unknown`: nothing to hold it
    #: against.
    manifest: ManifestVerdict
    #: Whether the log beside it adds up to the same state; `out-of-reach`: it does not go back, or on, so far.
    log: LogVerdict
    #: What is wrong. A sentence each, with file, byte and offset.
    findings: list[str]
    #: Why the log beside it was not judged, where that is for its own damage.
    notes: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


class CheckpointVerification:
    """Checks the checkpoints of a path, and what they need of the log beside them."""

    def __init__(self, path: Path) -> None:
        """Look for the files; nothing is read yet.

        Raises:
            StorageError: there is no checkpoint.
        """
        files = find_files(path)
        self.wanted = [file for file in files if file.is_checkpoint]
        if not self.wanted:
            raise StorageError(f"{path}: {_NO_CHECKPOINT if path.is_file() else 'holds no checkpoint (*.checkpoint)'}")
        self._files = _with_log(self.wanted[0]) if path.is_file() else files
        self.total_bytes = total_bytes(self._files)

    def run(self, on_progress: Callable[[int], None]) -> list[CheckpointVerdict]:
        """Check everything; the verdicts are in the order of ``wanted``.

        Raises:
            StorageError: a file cannot be read at all.
        """
        log = LogVerification(self._files, on_progress, is_whole_log=False)
        log.run()
        return [_verdict(file, log) for file in self.wanted]


def _with_log(checkpoint: LogFile) -> list[LogFile]:
    """A checkpoint and the files of its directory that may add up to the same state."""
    if checkpoint.offset is None or checkpoint.saved is not None:
        return [checkpoint]
    end = checkpoint.offset
    beside = [file for file in find_files(checkpoint.path.parent) if (file.offset or 0) < end]
    return [*(file for file in beside if not file.is_checkpoint), *(f for f in beside if f.is_checkpoint), checkpoint]


def _verdict(file: LogFile, log: LogVerification) -> CheckpointVerdict:
    findings = [finding for finding in log.verdict.findings if finding.startswith(f"{file.path}:")]
    image = log.images.get(file.path)
    if image is not None:
        findings += [f"{file.path}: {rule}" for rule in islice(broken_rules(image), _BROKEN_MAX)]
    digest = None if image is None else digest_image(image).text
    same = log.same_as_log.get(file.path)
    return CheckpointVerdict(
        path=str(file.path),
        end_offset=file.offset,
        epoch=file.epoch,
        cluster_id=None if file.saved is None else file.saved.cluster_id,
        saved_ms=None if file.saved is None else file.saved.saved_ms,
        size=file.path.stat().st_size,
        digest=digest,
        manifest=_check_counted(file, digest, findings),
        log="out-of-reach" if same is None else "same" if same else "different",
        findings=findings,
        notes=_damage_beside(log) if same is None and file.offset else [],
    )


def _damage_beside(log: LogVerification) -> list[str]:
    """The damage of the segments."""
    segments = tuple(f"{file.path}:" for file in log.segments)
    return [finding for finding in log.verdict.findings if finding.startswith(segments)]


def _check_counted(file: LogFile, digest: str | None, findings: list[str]) -> ManifestVerdict:
    """Hold what its writer counted, in a trailer or a manifest, against the file's bytes and its content."""
    if file.saved is None:
        return _check_manifest(file, digest, findings)
    content = CountedContent()
    try:
        for batch in iter_batches(file):
            content.add(batch.data)
    except CorruptBatch:
        return "unknown"
    if content.crc != file.saved.crc:
        findings.append(f"{file.path}: its bytes have the CRC {content.crc}, its trailer says {file.saved.crc}")
    return _same_digest(file, digest, file.saved.digest.hex(), "trailer", findings)


def _check_manifest(file: LogFile, digest: str | None, findings: list[str]) -> ManifestVerdict:
    """Hold the manifest, if there is one, against the file's bytes and its content."""
    if file.offset is None or file.epoch is None:
        return "none"
    id_ = CheckpointId(file.offset, file.epoch)
    path = file.path.parent / manifest_name(id_)
    if not path.exists():
        return "none"
    try:
        info = check_checkpoint(RealDisk(), str(file.path), id_)
    except CorruptCheckpoint as error:
        if not findings:
            findings.append(str(error))
        return "unknown"
    try:
        counted = decode_manifest(path.read_bytes(), str(path), info).digest.hex()
    except CorruptState as error:
        findings.append(f"{file.path}: {error}")
        return "damaged"
    return _same_digest(file, digest, counted, "manifest", findings)


def _same_digest(
    file: LogFile, digest: str | None, counted: str, by: str, findings: list[str]
) -> Literal["same", "different", "unknown"]:
    if digest is None:
        return "unknown"
    if counted != digest:
        findings.append(f"{file.path}: its content has the digest {digest}, its {by} says {counted}")
        return "different"
    return "same"
