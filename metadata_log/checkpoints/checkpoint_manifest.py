"""The manifest beside a checkpoint: what its writer counted, in msgpack behind a CRC-32C."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import msgpack
from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo
from quorate.metadata_log.errors import CorruptState

_VERSION: Final = 1
_CRC: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """Facts about a checkpoint's content, by whoever wrote it."""

    #: Data records by type name.
    record_counts: dict[str, int]
    #: Digest of the state the checkpoint holds.
    digest: bytes


def encode_manifest(manifest: CheckpointManifest, info: CheckpointInfo) -> bytes:
    """The file's bytes. ``info`` ties it to the bytes of one checkpoint."""
    payload: bytes = msgpack.packb(
        {
            "version": _VERSION,
            "checkpoint": [*info.id, info.size, info.crc],
            "records": manifest.record_counts,
            "digest": manifest.digest,
        }
    )
    return _CRC.pack(crc32c(payload)) + payload


def decode_manifest(data: bytes, path: str, info: CheckpointInfo) -> CheckpointManifest:
    """The manifest in ``data``, which must be that of ``info``.

    Raises:
        CorruptState: the CRC does not hold, the version is unknown, or it belongs to other bytes.
    """
    payload = data[_CRC.size :]
    if len(data) < _CRC.size or crc32c(payload) != _CRC.unpack_from(data)[0]:
        raise CorruptState(path, "the CRC of the manifest does not match")
    try:
        document: Any = msgpack.unpackb(payload)
        version, covered, records, digest = (document[name] for name in ("version", "checkpoint", "records", "digest"))
        end_offset, epoch, size, crc = covered
        manifest = CheckpointManifest({str(name): int(count) for name, count in records.items()}, bytes(digest))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptState(path, f"the manifest has not the fields of one: {error!r}") from error
    if version != _VERSION:
        raise CorruptState(path, f"manifest version {version}; only {_VERSION} is known")
    if (CheckpointId(end_offset, epoch), size, crc) != (info.id, info.size, info.crc):
        raise CorruptState(path, f"the manifest is that of other bytes: {size} with CRC {crc}")
    return manifest
