"""The trailer of a saved checkpoint: what it says, and that damage to it is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.saved_checkpoint import SavedCheckpoint, encode_trailer, read_trailer
from quorate.metadata_log.errors import CorruptState

CONTENT = b"the batches of a checkpoint"
SAVED = SavedCheckpoint(CheckpointId(61, 2), len(CONTENT), 7, bytes(range(32)), "5L6g3nShT-eMCtK--X86sw", 1001, 12)


def written(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "any name"
    path.write_bytes(data)
    return str(path)


def test_trailer_is_read_back_from_behind_the_content(tmp_path: Path) -> None:
    assert read_trailer(written(tmp_path, CONTENT + encode_trailer(SAVED))) == SAVED


@pytest.mark.parametrize("data", [b"", b"short", CONTENT, (CONTENT + encode_trailer(SAVED))[:-1]])
def test_file_that_does_not_end_so_has_no_trailer(tmp_path: Path, data: bytes) -> None:
    assert read_trailer(written(tmp_path, data)) is None


def test_any_changed_byte_of_a_trailer_is_found(tmp_path: Path) -> None:
    trailer = encode_trailer(SAVED)
    for position in range(len(trailer)):
        damaged = bytearray(CONTENT + trailer)
        damaged[len(CONTENT) + position] ^= 0x10
        path = written(tmp_path, bytes(damaged))
        if position >= len(trailer) - 8:
            assert read_trailer(path) is None  # it ends as no such file does
            continue
        with pytest.raises(CorruptState):
            read_trailer(path)


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", b""])
def test_trailer_of_other_bytes_is_found(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptState, match=rf"{len(content)} bytes before the trailer, which says {len(CONTENT)}"):
        read_trailer(written(tmp_path, content + encode_trailer(SAVED)))


@pytest.mark.parametrize(
    "saved",
    [
        replace(SAVED, digest=b"short"),
        replace(SAVED, cluster_id=""),
        replace(SAVED, cluster_id="c" * 257),
        replace(SAVED, generation=-1),
        replace(SAVED, cluster_id="c" * 5_000),
    ],
)
def test_fields_have_limits(tmp_path: Path, saved: SavedCheckpoint) -> None:
    with pytest.raises(CorruptState):
        read_trailer(written(tmp_path, CONTENT + encode_trailer(saved)))
