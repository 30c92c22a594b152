"""Other accounts of the state: manifests beside checkpoints, and a replay that is not the pipeline's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo, manifest_name
from quorate.metadata_log.checkpoints.checkpoint_manifest import decode_manifest
from quorate.pipeline.files import storage
from quorate.pipeline.files.archives import Form
from quorate.pipeline.files.inputs import InputFile

_READ_BYTES: Final = 4 * 1024 * 1024


class Replayed(NamedTuple):
    """A state as somebody else's replay has it."""

    digest: str
    #: Those that a checkpoint of it would hold.
    records: Iterator[Any]


#: The state before an offset of the log in a metadata directory. The pipeline shares no code with the controllers'
#: replay: whoever starts an audit hands it in. Raises ``QuorateError``: the state cannot be had.
OtherReplay = Callable[[str, int], Replayed]


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


def is_replayable(paths: Sequence[str]) -> bool:
    """Whether they are one directory on this machine, which is what a controller has."""
    return len(paths) == 1 and os.path.isdir(paths[0])
