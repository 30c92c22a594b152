"""Heads of requests are told from their bodies, in whatever pieces both come."""

from __future__ import annotations

from random import Random

import pytest

from quorate.controller.connections.head_lengths import HEAD_BYTES_MAX, HEAD_END, HeadLengths

LINE = b"POST /v1/topics HTTP/1.1\r\nHost: a"
GET = b"GET /livez HTTP/1.1\r\nHost: a" + HEAD_END
#: All that looks like the end of a head, and like a head.
BODY = b"\r\n\r\nGET / HTTP/1.1\r\n" * 3_000
SIZED = LINE + b"\r\ncontent-LENGTH:  %d\t" % len(BODY) + HEAD_END + BODY
CODED = LINE + b"\r\nTransfer-Encoding: gzip, Chunked" + HEAD_END
CHUNKED = CODED + b"%X;name=value\r\n" % len(BODY) + BODY + b"\r\n2 \r\nab\r\n"
TRAILERS = b"0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n"
EMPTY_END = b"00;last\r\n\r\n"
STREAM = b"".join(
    (
        GET,
        b"\r\n\r\n",
        SIZED,
        GET,
        CHUNKED + TRAILERS,
        b"\r\n",
        SIZED,
        CHUNKED + EMPTY_END,
        GET,
        GET,
        CHUNKED + TRAILERS,
    )
)


def fed(data: bytes, sizes: list[int]) -> HeadLengths:
    heads, at = HeadLengths(), 0
    for size in sizes:
        piece = data[at : at + size]
        assert heads.take(piece) == len(piece)
        at += size
    assert heads.take(data[at:]) == len(data[at:])
    return heads


@pytest.mark.parametrize("seed", range(20))
def test_heads_are_counted_in_whatever_pieces_they_come(seed: int) -> None:
    drawn = Random(seed)
    sizes = [drawn.choice((1, 2, 3, 5, 50, 10_000, 70_000)) for _ in range(400)]
    heads = fed(STREAM, sizes)
    assert (heads.whole, heads.is_under_way, heads.is_too_long) == (9, False, False)


def test_head_is_under_way_from_its_first_byte_to_its_last() -> None:
    for before in (b"", GET, SIZED, CHUNKED + TRAILERS, CHUNKED + EMPTY_END):
        heads = fed(before + b"\r\n", [])
        assert not heads.is_under_way
        for end in (1, len(GET) - 1):
            heads = fed(before + GET[:end], [])
            assert heads.is_under_way
        heads.take(GET[-1:])
        assert not heads.is_under_way


@pytest.mark.parametrize(
    "before",
    [b"", GET, b"\r\n", SIZED, CHUNKED + TRAILERS, CHUNKED + EMPTY_END],
    ids=["nothing", "another", "an empty line", "a body", "chunks and headers", "chunks"],
)
@pytest.mark.parametrize("piece", [1, 3, 10**6])
def test_head_of_the_longest_length_is_taken_and_one_byte_more_is_not(before: bytes, piece: int) -> None:
    longest = LINE + b"\r\nX-Long: " + b"a" * (HEAD_BYTES_MAX - len(LINE) - 10)
    for head, is_too_long in ((longest, False), (longest + b"a", True)):
        heads, sent = fed(before, []), head + HEAD_END + GET
        taken = sum(heads.take(sent[at : at + piece]) for at in range(0, len(sent), piece))
        assert heads.is_too_long is is_too_long
        assert taken == (HEAD_BYTES_MAX + len(HEAD_END) if is_too_long else len(sent))


def test_last_line_end_of_a_head_that_comes_with_a_long_body_is_none_of_it() -> None:
    heads = fed(SIZED + SIZED[: SIZED.index(BODY) - 2], [len(SIZED) + 5])
    assert heads.is_under_way
    heads.take(b"\r\n" + b"a" * len(BODY))
    assert (heads.whole, heads.is_under_way, heads.is_too_long) == (2, False, False)


@pytest.mark.parametrize(
    "endless",
    [b"1;" + b"a" * HEAD_BYTES_MAX, b"0\r\n" + b"X: y\r\n" * HEAD_BYTES_MAX],
    ids=["the line before one", "headers behind them"],
)
def test_what_stands_around_chunks_is_bounded_like_a_head(endless: bytes) -> None:
    heads = fed(CHUNKED, [])
    heads.take(endless)
    assert heads.is_too_long


@pytest.mark.parametrize("size", [b"g", b"-1", b"0x10", b"1_0", b"", b" 1", b"1 2", b"1" * 17])
def test_what_is_no_chunk_is_left_to_who_refuses_it(size: bytes) -> None:
    heads = fed(CHUNKED, [])
    heads.take(size + b"\r\n" + b"a" * (2 * HEAD_BYTES_MAX))
    assert (heads.whole, heads.is_under_way, heads.is_too_long) == (1, False, False)
