"""A checkpoint that was saved out of a running cluster: one file, of any name.

It is the checkpoint as it lies in a metadata directory, byte for byte, and behind it a trailer that says what there the
file's name, its manifest and ``meta.properties`` say: what it covers, its digest, and whose it is. The trailer is
msgpack, and in the last 16 bytes of the file its CRC-32C, its length, and what such a file ends with.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any, Final

import msgpack
from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.records.wire import Buffer
from quorate.metadata_log.regular_files import reading

_VERSION: Final = 1
_MAGIC: Final = b"QRM-SAVE"
#: CRC-32C and length of what stands before it, and the magic.
_END: Final = struct.Struct(">II8s")
#: Far more than any trailer has.
_TRAILER_BYTES_MAX: Final = 4_096
_CLUSTER_ID_CHARS_MAX: Final = 256
_PIECE_BYTES: Final = 1024 * 1024
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """The facts in the trailer, about the checkpoint before it."""

    #: What it covers; committed when it was saved.
    id: CheckpointId
    #: Bytes, and CRC-32C, of the checkpoint itself.
    size: int
    crc: int
    #: Digest of the state that it holds.
    digest: bytes
    cluster_id: str
    #: As ``MetaProperties.generation``.
    generation: int
    #: By the clock of the machine that saved it, milliseconds since 1970.
    saved_ms: int


class CountedContent:
    """The size, and the CRC-32C, of a checkpoint that comes in pieces."""

    def __init__(self) -> None:
        self.size = 0
        self.crc = 0

    def add(self, piece: Buffer) -> None:
        """Count the next piece."""
        self.size += len(piece)
        self.crc = crc32c(piece, self.crc)


def encode_trailer(saved: SavedCheckpoint) -> bytes:
    """The bytes that follow the checkpoint's."""
    payload: bytes = msgpack.packb(
        {
            "version": _VERSION,
            "checkpoint": [*saved.id, saved.size, saved.crc],
            "digest": saved.digest,
            "cluster": saved.cluster_id,
            "generation": saved.generation,
            "saved_ms": saved.saved_ms,
        }
    )
    return payload + _END.pack(crc32c(payload), len(payload), _MAGIC)


def read_trailer(path: str) -> SavedCheckpoint | None:
    """The facts in a file's trailer; None: the file does not end as a saved checkpoint does.

    Raises:
        CorruptState: it does, and the trailer is damaged, or of a version that this program does not know.
        OSError: the file cannot be read.
    """
    with reading(path) as file:
        size = file.seek(0, os.SEEK_END)
        if size < _END.size:
            return None
        file.seek(size - _END.size)
        crc, length, magic = _END.unpack(file.read(_END.size))
        if magic != _MAGIC:
            return None
        start = size - _END.size - length
        if length > _TRAILER_BYTES_MAX or start < 0:
            raise CorruptState(path, f"a trailer of {length} bytes in a file of {size}")
        file.seek(start)
        payload = file.read(length)
    if len(payload) < length or crc32c(payload) != crc:
        raise CorruptState(path, "the CRC of the trailer does not match")
    saved = _decoded(payload, path)
    if saved.size != start:
        raise CorruptState(path, f"{start} bytes before the trailer, which says {saved.size}")
    return saved


def check_content(path: str, saved: SavedCheckpoint) -> None:
    """Hold a file's checkpoint against what its trailer counted.

    Raises:
        CorruptState: it has other bytes. OSError: the file cannot be read.
    """
    content = CountedContent()
    with reading(path) as file:
        while piece := file.read(min(saved.size - content.size, _PIECE_BYTES)):
            content.add(piece)
    if content.crc != saved.crc:
        raise CorruptState(path, f"its bytes have the CRC {content.crc}, its trailer says {saved.crc}")


def _decoded(payload: bytes, path: str) -> SavedCheckpoint:
    try:
        document: Any = msgpack.unpackb(payload)
        version = document["version"]
        if version != _VERSION:
            raise CorruptState(path, f"trailer version {version!r}; only {_VERSION} is known")
        end_offset, epoch, size, crc = (_number(part) for part in document["checkpoint"])
        saved = SavedCheckpoint(
            id=CheckpointId(end_offset, epoch),
            size=size,
            crc=crc,
            digest=bytes(document["digest"]),
            cluster_id=str(document["cluster"]),
            generation=_number(document["generation"]),
            saved_ms=_number(document["saved_ms"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptState(path, f"the trailer has not the fields of one: {error!r}") from error
    if len(saved.digest) != _DIGEST_BYTES or not 0 < len(saved.cluster_id) <= _CLUSTER_ID_CHARS_MAX:
        raise CorruptState(path, "the trailer's digest or cluster id is none")
    return saved


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no number that is due here")
    return value
