"""Other accounts of the state: manifests beside checkpoints, and the controllers' own replay as another program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo, manifest_name
from quorate.metadata_log.checkpoints.checkpoint_manifest import decode_manifest
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files import storage
from quorate.pipeline.files.archives import Form
from quorate.pipeline.files.inputs import InputFile

_DIGEST: Final = re.compile(r"^Digest: ([0-9a-f]{64})$", flags=re.MULTILINE)
_READ_BYTES: Final = 4 * 1024 * 1024


def manifest_digest(checkpoint: InputFile) -> str | None:
    """The digest in the manifest beside a checkpoint; None where there is none, as beside Kafka's.

    Raises:
        CorruptState: the manifest is damaged, or that of another checkpoint.
    """
    if checkpoint.place.form is not Form.PLAIN:
        return None
    name = CheckpointId(checkpoint.offset, checkpoint.epoch or 0)
    path = os.path.join(os.path.dirname(checkpoint.place.path), manifest_name(name))
    if not storage.is_file(path):
        return None
    size = crc = 0
    with storage.open_file(checkpoint.place.full_path) as stream:
        while data := stream.read(_READ_BYTES):
            crc = crc32c(data, crc)
            size += len(data)
    return decode_manifest(storage.read(path), path, CheckpointInfo(name, size, 0, crc)).digest.hex()


def beside_digest(paths: Sequence[str], offset: int) -> str | None:
    """The digest of the state before an offset as the controllers' replay has it; None where it cannot read the paths.

    Raises:
        PipelineError: it was refused.
    """
    if not _is_replayable(paths):
        return None
    done = _replay(paths[0], offset)
    digest = _DIGEST.search(done.stdout)
    if done.returncode or digest is None:
        said = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["it said nothing"]
        raise PipelineError(f"{paths[0]}: the controllers' own replay failed: {said[-1]}")
    return digest[1]


def beside_records(paths: Sequence[str], offset: int) -> Iterator[str]:
    """The records of that state, as JSON."""
    yield from _replay(paths[0], offset, "--records").stdout.splitlines()


def _is_replayable(paths: Sequence[str]) -> bool:
    return len(paths) == 1 and os.path.isdir(paths[0])


def _replay(path: str, offset: int, *options: str) -> subprocess.CompletedProcess[str]:
    """``quorate image show``: that program imports the controllers' replay, this one must not."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "quorate.scripts.cli",
        "image",
        "show",
        "--from",
        path,
        "--at",
        str(offset),
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)
