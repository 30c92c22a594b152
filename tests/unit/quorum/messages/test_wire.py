"""Messages as bytes: a closed list, checked field by field."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.metadata_log.limits import EPOCH_MAX, OFFSET_MAX
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages import messages, wire
from quorate.quorum.messages.wire import decode, encode
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION

EXAMPLES: list[messages.Message] = [
    messages.Append(3, 7, 100, 2, 90, b"batches", ((1, 80), (2, 100)), is_vouched=True),
    messages.Commit(3, 90),
    messages.AppendReply(3, 7, 100, 95, is_voter=True),
    messages.AppendConflict(3, 7, 40, is_voter=False),
    messages.StaleEpoch(4),
    messages.PreVote(4, 1, 3, 100),
    messages.PreVoteReply(3, 1, is_granted=False, has_leader=True),
    messages.Vote(4, 3, 100),
    messages.VoteReply(4, is_granted=True),
    messages.EndEpoch(3),
    messages.CheckpointOffer(3, 7, 50, 2, 1000, 12345, b"manifest"),
    messages.CheckpointProgress(3, 7, 500, is_voter=True),
    messages.ChunkRequest(3, 50, 2, 500),
    messages.ChunkMessage(3, 50, 2, 500, 777, b"data"),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_message_encoded_comes_back_equal(message: messages.Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_older_version_lacks_what_came_later_and_nothing_else(message: messages.Message) -> None:
    payload = encode(message, OLDEST_VERSION)
    if isinstance(message, messages.Commit):
        assert payload is None
        with pytest.raises(ProtocolError, match="message type 2 is not in the list of version 4"):
            decode(encode(message), OLDEST_VERSION)
        return
    assert payload is not None
    expected = replace(message, acknowledged=()) if isinstance(message, messages.Append) else message
    assert decode(payload, OLDEST_VERSION) == expected


def test_every_version_but_the_oldest_brought_something() -> None:
    since = {*wire._TYPE_SINCE.values(), *(version for version, _ in wire._FIELD_SINCE.values())}
    assert since == set(range(OLDEST_VERSION + 1, NEWEST_VERSION + 1))


def test_message_of_one_version_is_none_of_another() -> None:
    older, newer = encode(EXAMPLES[0], OLDEST_VERSION), encode(EXAMPLES[0])
    assert older is not None
    with pytest.raises(ProtocolError, match="7 fields, not 8"):
        decode(older)
    with pytest.raises(ProtocolError, match="8 fields, not 7"):
        decode(newer, OLDEST_VERSION)


def test_examples_name_every_message_of_the_protocol() -> None:
    assert {type(message) for message in EXAMPLES} == set(messages.Message.__args__)


@pytest.mark.parametrize(
    "fields",
    [
        [99, 1],
        ["Append"],
        [2, 3],
        [2, 3, "90"],
        [2, 3, -1],
        [2, 3, 1 << 63],
        [2, True, 90],
        [9, 4, 1],
        [1, 3, 7, 100, 2, 90, b"", [[1, 2, 3]], False],
        [1, 3, 7, 100, 2, 90, b"", [[1, -2]], False],
    ],
    ids=str,
)
def test_message_of_wrong_shape_is_refused(fields: list[Any]) -> None:
    with pytest.raises(ProtocolError):
        decode(msgpack.packb(fields))


#: As many as a frame has room for.
MILLIONS = 8_000_000


@pytest.mark.parametrize(
    "payload",
    [
        b"\x91" * 1020 + b"\xc0",
        b"\x91\xdd" + MILLIONS.to_bytes(4, "big") + b"\x01" * MILLIONS,
        b"\x92\x01\xdc\x03\xe8" + b"\x80" * 1000,
        b"\xdf" + MILLIONS.to_bytes(4, "big") + b"".join(b"\xa4%04x\xc0" % n for n in range(50_000)),
        b"\x92\x01\xdf" + (50_000).to_bytes(4, "big") + b"".join(b"\xa4%04x\xc0" % n for n in range(50_000)),
        b"\x99" + b"\x01" * 6 + b"\xc4\x00" + b"\x91" * 1000 + b"\x01\xc2",
        msgpack.packb([1, 3, 7, 100, 2, 90, b"", [[1, 2]] * 1001, False]),
    ],
    ids=["deep type", "endless type", "maps", "endless map", "large map", "deep pair", "pairs"],
)
def test_message_that_would_take_long_to_make_or_to_tell_of_is_refused_at_once(payload: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError) as refused:
            decode(payload)
        made = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Made whole, a list takes eight bytes for each of its items.
    assert made < 3 * len(payload) + 2**20
    assert len(str(refused.value)) < 200


def outside(message: messages.Message) -> Iterator[messages.Message]:
    """The message with one number beyond what a log can hold, for each number."""
    for field in fields(message):
        if field.type == "int":
            highest = EPOCH_MAX if "epoch" in field.name else (1 << 32) - 1 if field.name == "crc" else OFFSET_MAX
            yield replace(cast("Any", message), **{field.name: highest + 1})


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_number_that_no_log_can_hold_is_refused(message: messages.Message) -> None:
    for wrong in outside(message):
        with pytest.raises(ProtocolError, match="out of range"):
            decode(encode(wrong))


@pytest.mark.parametrize(
    "message",
    [
        messages.Append(3, 7, 100, 4, 90, b"", (), is_vouched=False),
        messages.Append(3, 7, 100, 3, 90, b"", ((1, OFFSET_MAX + 1),), is_vouched=False),
        messages.Append(3, 7, 100, 3, 90, b"", ((1, 1),) * 1_001, is_vouched=False),
        messages.AppendReply(3, 7, 100, 101, is_voter=True),
        messages.PreVote(4, 1, 4, 100),
        messages.Vote(4, 4, 100),
        messages.CheckpointOffer(3, 7, 50, 4, 1000, 1, b""),
        messages.CheckpointOffer(3, 7, 50, 2, 0, 1, b""),
        messages.CheckpointOffer(3, 7, 50, 2, 1000, 1, bytes(1024 * 1024 + 1)),
        messages.ChunkRequest(3, 50, 4, 500),
        messages.ChunkMessage(3, 50, 4, 500, 777, b"data"),
    ],
    ids=lambda message: str(message)[:90],
)
def test_message_that_contradicts_itself_is_refused(message: messages.Message) -> None:
    with pytest.raises(ProtocolError):
        decode(encode(message))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_protocol_error(payload: bytes) -> None:
    try:
        message = decode(payload)
    except ProtocolError:
        return
    assert decode(encode(message)) == message
