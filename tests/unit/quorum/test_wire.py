"""Messages as bytes: a closed list, checked field by field."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum import messages
from quorum.errors import ProtocolError
from quorum.wire import decode, encode

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
    messages.Chunk(3, 50, 2, 500, 777, b"data"),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_message_encoded_comes_back_equal(message: messages.Message) -> None:
    assert decode(encode(message)) == message


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


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_protocol_error(payload: bytes) -> None:
    try:
        message = decode(payload)
    except ProtocolError:
        return
    assert decode(encode(message)) == message
