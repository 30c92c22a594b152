"""Frames out of pieces of any size."""

from __future__ import annotations

import itertools
import struct
import tracemalloc
from random import Random

import pytest

from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.errors import ProtocolError
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, HANDSHAKE_BYTES_MAX, PING, FrameReader, framed, pieces


def read_in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """What a reader makes of ``data`` when it comes cut at these places."""
    reader = FrameReader()
    reader.bytes_max = FRAME_BYTES_MAX
    edges = [0, *sorted(cuts), len(data)]
    return [bytes(frame) for begin, end in itertools.pairwise(edges) for frame in reader.feed(data[begin:end])]


@pytest.mark.parametrize("seed", range(50))
def test_frames_cut_anywhere_are_read_whole(seed: int) -> None:
    rng = Random(seed)
    frames = [rng.randbytes(rng.choice((0, 1, 3, 4, 5, 100, 70_000))) for _ in range(rng.randint(1, 12))]
    data = b"".join(map(framed, frames))

    assert read_in_pieces(data, [rng.randint(0, len(data)) for _ in range(rng.randint(0, 40))]) == frames


def test_frames_byte_by_byte_are_read_whole() -> None:
    data = framed(b"one") + PING + framed(b"three")

    assert read_in_pieces(data, list(range(len(data)))) == [b"one", b"", b"three"]


@pytest.mark.parametrize("length", [HANDSHAKE_BYTES_MAX + 1, 2**31, 2**32 - 1])
def test_frame_over_the_limit_is_refused_by_its_length_alone(length: int) -> None:
    """Nothing is waited for, and no memory is taken."""
    with pytest.raises(ProtocolError, match=str(length)):
        list(FrameReader().feed(struct.pack(">I", length)))


def test_frame_limit_raised_between_two_frames_holds_for_the_next() -> None:
    """The proof and the first message may come at once."""
    reader = FrameReader()
    large = bytes(HANDSHAKE_BYTES_MAX + 1)
    frames = []
    for frame in reader.feed(framed(b"proof") + framed(large)):
        frames.append(frame)
        reader.bytes_max = FRAME_BYTES_MAX

    assert frames == [b"proof", large]


def test_frame_of_the_largest_batch_is_put_together_without_copying_what_was_there() -> None:
    """A piece takes memory of its own size, however much of the frame came before it."""
    reader = FrameReader()
    reader.bytes_max = FRAME_BYTES_MAX
    data = framed(bytes(BATCH_BYTES_MAX))
    piece = bytes(64 * 1024)
    assert list(reader.feed(data[: BATCH_BYTES_MAX // 2])) == []
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(10):
            assert list(reader.feed(piece)) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most - before < 2 * len(piece)
    assert list(reader.feed(data[BATCH_BYTES_MAX // 2 + 10 * len(piece) :])) == [bytes(BATCH_BYTES_MAX)]


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 1024 * 1024])
def test_frame_is_the_same_whether_its_length_is_written_beside_it_or_with_it(size: int) -> None:
    payload = bytes(size)
    written = pieces(payload)
    assert b"".join(written) == framed(payload)
    assert (len(written), written[-1] is payload) == ((2, True) if size > 64 * 1024 else (1, False))
