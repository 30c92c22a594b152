"""Messages between broker processes: what is encoded comes back, and nothing else is believed."""

from __future__ import annotations

from dataclasses import replace

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.broker.replicas.messages import (
    EVERYTHING,
    FRAME_BYTES_MAX,
    NOTHING,
    POSITION_MAX,
    UNSAID,
    FollowAnswer,
    FollowedRows,
    FollowMessage,
    MalformedMessage,
    decode_answer,
    decode_message,
    encode_answer,
    encode_message,
    no_rows,
)
from quorate.metadata_log.errors import ErrorCode

ROWS = FollowedRows(
    np.arange(32, dtype=np.uint8).reshape(2, 16),
    np.array([0, 7], np.int32),
    np.array([3, 4], np.int32),
    np.array([11, 12], np.int32),
    np.array([NOTHING, EVERYTHING], np.int64),
    np.array([False, True]),
)
MESSAGE = FollowMessage("cluster", "127.0.0.1:18091", 2**62, 5, ((11, 40), (12, 41)), 900, 1_000, ROWS)
ANSWER = FollowAnswer(
    ErrorCode.NONE, 901, 10, 1_010, (12,), np.array([1], np.int32), np.array([ErrorCode.FENCED_LEADER_EPOCH], np.int16)
)


def fields_of(data: bytes) -> list[object]:
    fields: list[object] = msgpack.unpackb(data)
    return fields


def test_message_encoded_and_decoded_is_the_same() -> None:
    decoded = decode_message(encode_message(MESSAGE))

    for name in ("cluster_id", "address", "session", "number", "followers", "replied_ms", "position"):
        assert getattr(decoded, name) == getattr(MESSAGE, name), name
    for name in FollowedRows.__dataclass_fields__:
        assert np.array_equal(getattr(decoded.rows, name), getattr(ROWS, name)), name
    empty = decode_message(encode_message(replace(MESSAGE, replied_ms=UNSAID, position=UNSAID, rows=no_rows())))
    assert (len(empty.rows), empty.position) == (0, UNSAID)


def test_answer_encoded_and_decoded_is_the_same() -> None:
    decoded = decode_answer(encode_answer(ANSWER))

    assert (decoded.time_ms, decoded.log_start, decoded.log_end, decoded.refused_followers) == (901, 10, 1_010, (12,))
    assert (decoded.refused_rows.tolist(), decoded.refused_codes.tolist()) == ([1], [74])


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, 2, "in version 1"),
        (1, "x" * 65, "cluster id"),
        (2, -1, "session"),
        (3, "5", "number"),
        (4, [], "1 to 1000 pairs"),
        (4, [12, 1, 11, 1], "ascending"),
        (4, [11], "pairs"),
        (4, [2**31, 1], "follower"),
        (5, -2, "time"),
        (6, 2**63, "position"),
        (7, b"x" * 17, "topic ids"),
        (8, b"xyz", "partitions"),
        (8, b"\x00" * 4, "1, 2"),
        (8, b"\xff" * 8, "below what it may be"),
        (11, b"\xfe" + b"\xff" * 15, "below what it may be"),
        (12, "xx", "levels"),
        (13, "http://example.org:80", "host:port"),
    ],
)
def test_message_with_one_wrong_field_is_refused(at: int, value: object, words: str) -> None:
    fields = fields_of(encode_message(MESSAGE))
    fields[at] = value

    with pytest.raises(MalformedMessage, match=words):
        decode_message(msgpack.packb(fields))


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (1, 9_999, "error"),
        (2, -1, "time"),
        (4, 9, "end"),
        (4, POSITION_MAX + 1, "end"),
        (4, EVERYTHING, "end"),
        (5, [0] * 1_001, "refused"),
        (6, b"", "codes"),
    ],
)
def test_answer_with_one_wrong_field_is_refused(at: int, value: object, words: str) -> None:
    fields = fields_of(encode_answer(ANSWER))
    fields[at] = value

    with pytest.raises(MalformedMessage, match=words):
        decode_answer(msgpack.packb(fields))


def test_answer_with_the_greatest_end_is_one_and_so_is_what_a_follower_makes_of_it() -> None:
    fields = fields_of(encode_answer(ANSWER))
    fields[4] = POSITION_MAX

    end = decode_answer(msgpack.packb(fields)).log_end
    assert (end, int(np.array([end], np.float64).astype(np.int64)[0])) == (POSITION_MAX, POSITION_MAX)


def test_message_larger_than_a_frame_is_refused_unread() -> None:
    with pytest.raises(MalformedMessage, match="is the most"):
        decode_message(b"\xff" * (FRAME_BYTES_MAX + 1))


@given(st.binary(max_size=64) | st.integers(0, 400).map(lambda cut: encode_message(MESSAGE)[:cut] + b"\xc1"))
def test_message_any_other_bytes_are_refused_as_such(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_message(data)
    with pytest.raises(MalformedMessage):
        decode_answer(data)
