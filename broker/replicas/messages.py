"""Messages from a process that hosts followers to one that hosts leaders, and the answers (Kafka's fetch sessions).

A session begins with message 0. What a message names is followed from then on, and is not named again unless it
changed; a later message speaks for all of it by one position. Every message repeats the time of the answer before it
(``replied_ms``), so that a message that lay in a socket claims no more than was true when it was written.
Encoded with msgpack, columns as little-endian bytes. Nothing that comes in is believed before ``decode_...`` has
looked at every length and range.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.metadata_log.ids import UUID_BYTES

#: Partitions that one message names.
ROWS_MAX: Final = 50_000
#: Brokers that one process plays, and so may follow with.
FOLLOWERS_MAX: Final = 1_000
#: Bytes of a message or an answer; what the limits above come to, rounded up.
FRAME_BYTES_MAX: Final = 4 * 1024 * 1024
#: ``position`` before anything is followed, and ``replied_ms`` in message 0.
UNSAID: Final = -1

#: ``held`` of a replica that holds nothing.
NOTHING: Final = -1
#: Greatest end of a log: followers reckon in float64, in which a greater one may be no int64 any more.
POSITION_MAX: Final = 2**63 - 1024
#: "Whatever the leader has": that of one that is in the ISR when it begins to follow.
EVERYTHING: Final = 2**63 - 1

_VERSION: Final = 1
_CLUSTER_ID_MAX: Final = 64
_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}", re.ASCII)
_INT64_MAX: Final = 2**63 - 1
_INT32_MAX: Final = 2**31 - 1


class MalformedMessage(QuorateError):
    """Bytes that are no message of this protocol."""


@dataclass(frozen=True, slots=True, eq=False)
class FollowedRows:
    """Partitions that are followed newly, or otherwise than was said."""

    #: uint8[n, 16]
    topic_ids: NDArray[np.uint8]
    #: int32[n] each.
    partition_ids: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    #: Which broker follows.
    followers: NDArray[np.int32]
    #: int64[n]: what it holds, as a position; NOTHING and EVERYTHING.
    held: NDArray[np.int64]
    #: bool[n]: the session's position speaks for it from now on. Otherwise it copies, and will say when it is there.
    is_level: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.partition_ids)


@dataclass(frozen=True, slots=True, eq=False)
class FollowMessage:
    """One message of a session."""

    cluster_id: str
    #: host:port where the process listens that says this; "" = nowhere.
    address: str
    #: Drawn by chance by the follower's process.
    session: int
    #: 0, 1, 2, ... within the session.
    number: int
    #: (broker id, broker epoch) of all who follow here, ascending by id.
    followers: tuple[tuple[int, int], ...]
    #: ``FollowAnswer.time_ms`` of the answer before; UNSAID in message 0.
    replied_ms: int
    #: All level partitions of the session hold everything before this; UNSAID = there are none.
    position: int
    rows: FollowedRows


@dataclass(frozen=True, slots=True, eq=False)
class FollowAnswer:
    """The answer to one message."""

    #: NONE, or why the session is over: the follower begins another one.
    error: ErrorCode
    #: Of the leader's process; only it knows what the numbers mean.
    time_ms: int
    #: Where the logs of that process begin and end, at that time.
    log_start: int
    log_end: int
    #: Brokers that are not known under the epoch they named: nothing of theirs was noted.
    refused_followers: tuple[int, ...]
    #: int32[k]: rows of the message, ascending, that were not noted, and int16[k], why.
    refused_rows: NDArray[np.int32]
    refused_codes: NDArray[np.int16]


def no_rows() -> FollowedRows:
    """Nothing new."""
    return FollowedRows(
        np.empty((0, UUID_BYTES), np.uint8),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.empty(0, np.int64),
        np.empty(0, np.bool_),
    )


def over(error: ErrorCode) -> FollowAnswer:
    """The answer that ends a session."""
    return FollowAnswer(error, 0, 0, 0, (), np.empty(0, np.int32), np.empty(0, np.int16))


def encode_message(message: FollowMessage) -> bytes:
    """As bytes."""
    rows = message.rows
    packed: bytes = msgpack.packb([
        _VERSION, message.cluster_id, message.session, message.number,
        [number for pair in message.followers for number in pair], message.replied_ms, message.position,
        np.ascontiguousarray(rows.topic_ids).tobytes(), _bytes(rows.partition_ids, "<i4"),
        _bytes(rows.leader_epochs, "<i4"), _bytes(rows.followers, "<i4"), _bytes(rows.held, "<i8"),
        _bytes(rows.is_level, "?"), message.address,
    ])  # fmt: skip
    return packed


def decode_message(data: bytes) -> FollowMessage:
    """A message from bytes that anybody may have sent.

    Raises:
        MalformedMessage: it is none.
    """
    fields = _unpack(data, 14, "message")
    cluster_id = fields[1]
    if not isinstance(cluster_id, str) or len(cluster_id) > _CLUSTER_ID_MAX:
        raise MalformedMessage("the message's cluster id is no short text")
    address = fields[13]
    if not isinstance(address, str) or (address and _ADDRESS.fullmatch(address) is None):
        raise MalformedMessage("the message's address is not host:port")
    topic_ids = _column(fields[7], "u1", "topic ids").reshape(-1)
    if len(topic_ids) % UUID_BYTES or len(topic_ids) > ROWS_MAX * UUID_BYTES:
        raise MalformedMessage(f"{len(topic_ids)} bytes of topic ids are not up to {ROWS_MAX} of {UUID_BYTES} each")
    rows = FollowedRows(
        topic_ids.reshape(-1, UUID_BYTES),
        _column(fields[8], "<i4", "partitions"),
        _column(fields[9], "<i4", "leader epochs"),
        _column(fields[10], "<i4", "brokers"),
        _column(fields[11], "<i8", "positions"),
        _column(fields[12], "u1", "levels").astype(np.bool_),
    )
    lengths = {len(column) for column in (rows.topic_ids, rows.leader_epochs, rows.followers, rows.held, rows.is_level)}
    if lengths != {len(rows)}:
        raise MalformedMessage(f"the message's columns have {sorted(lengths | {len(rows)})} rows")
    if (rows.held < NOTHING).any() or (rows.partition_ids < 0).any() or (rows.leader_epochs < 0).any():
        raise MalformedMessage("a row of the message has a number below what it may be")
    return FollowMessage(
        cluster_id,
        address,
        _number(fields[2], 0, _INT64_MAX, "session"),
        _number(fields[3], 0, _INT64_MAX, "number"),
        _followers(fields[4]),
        _number(fields[5], UNSAID, _INT64_MAX, "time"),
        _number(fields[6], UNSAID, _INT64_MAX, "position"),
        rows,
    )


def encode_answer(answer: FollowAnswer) -> bytes:
    """As bytes."""
    packed: bytes = msgpack.packb([
        _VERSION, int(answer.error), answer.time_ms, answer.log_start, answer.log_end, list(answer.refused_followers),
        _bytes(answer.refused_rows, "<i4"), _bytes(answer.refused_codes, "<i2"),
    ])  # fmt: skip
    return packed


def decode_answer(data: bytes) -> FollowAnswer:
    """An answer from bytes that anybody may have sent.

    Raises:
        MalformedMessage: it is none.
    """
    fields = _unpack(data, 8, "answer")
    refused = fields[5]
    if not isinstance(refused, list) or len(refused) > FOLLOWERS_MAX:
        raise MalformedMessage("the answer's refused brokers are no list of bounded length")
    rows, codes = _column(fields[6], "<i4", "rows"), _column(fields[7], "<i2", "codes")
    if len(rows) != len(codes) or len(rows) > ROWS_MAX:
        raise MalformedMessage(f"the answer has {len(rows)} refused rows and {len(codes)} codes")
    log_start = _number(fields[3], 0, _INT64_MAX, "start")
    return FollowAnswer(
        _error(fields[1]),
        _number(fields[2], 0, _INT64_MAX, "time"),
        log_start,
        _number(fields[4], log_start, POSITION_MAX, "end"),
        tuple(_number(broker, 0, _INT32_MAX, "refused broker") for broker in refused),
        rows,
        codes,
    )


def _bytes(column: NDArray[Any], kind: str) -> bytes:
    return column.astype(kind, copy=False).tobytes()


def _unpack(data: bytes, count: int, what: str) -> Sequence[Any]:
    if len(data) > FRAME_BYTES_MAX:
        raise MalformedMessage(f"the {what} has {len(data)} bytes, {FRAME_BYTES_MAX} is the most")
    try:
        fields = msgpack.unpackb(data, raw=False, use_list=True, max_map_len=0, max_ext_len=0)
    except (ValueError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"the {what} cannot be unpacked: {error or type(error).__name__}") from error
    if not isinstance(fields, list) or len(fields) != count or fields[0] != _VERSION:
        raise MalformedMessage(f"the {what} is not a list of {count} fields in version {_VERSION}")
    return fields


def _number(value: object, least: int, most: int, what: str) -> int:
    if type(value) is not int or not least <= value <= most:
        raise MalformedMessage(f"the {what} is not a number from {least} to {most}")
    return value


def _column(value: object, kind: str, what: str) -> NDArray[Any]:
    if not isinstance(value, bytes) or len(value) % np.dtype(kind).itemsize:
        raise MalformedMessage(f"the column of {what} is not made of whole numbers")
    return np.frombuffer(value, kind)


def _followers(value: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or not 0 < len(value) <= 2 * FOLLOWERS_MAX or len(value) % 2:
        raise MalformedMessage(f"the followers are not 1 to {FOLLOWERS_MAX} pairs")
    ids = [_number(broker, 0, _INT32_MAX, "follower") for broker in value[::2]]
    epochs = [_number(epoch, 0, _INT64_MAX, "broker epoch") for epoch in value[1::2]]
    if any(one >= next_ for one, next_ in pairwise(ids)):
        raise MalformedMessage("the followers are not in ascending order")
    return tuple(zip(ids, epochs, strict=True))


def _error(value: object) -> ErrorCode:
    try:
        return ErrorCode(_number(value, -1, 2**15, "error"))
    except ValueError as error:
        raise MalformedMessage(f"the answer's error {value} is none") from error
