"""Bodies that were made to take long: refused for how much they say, and not for what that is."""

from __future__ import annotations

import msgpack
import pytest
from pydantic import BaseModel

from quorate.controller.api.content import JSON, MSGPACK, decode_body
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.protocol import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerHeartbeatRequest,
    BrokerState,
    CreateTopicsRequest,
)
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest

MILLIONS = 2_700_000
PARTS = "the body has more than 500000 parts: lists, objects and what is in them"
LISTS = "the body has more than 200000 lists and objects"


def items(item: bytes) -> bytes:
    """As many as fit into the largest body."""
    return item * MILLIONS


@pytest.mark.parametrize(
    ("model", "media", "body", "says"),
    [
        (CreateTopicsRequest, JSON, b'{"topics": [' + items(b"0,") + b"0]}", PARTS),
        (CreateTopicsRequest, JSON, b'{"topics": [' + items(b"{},") + b"{}]}", PARTS),
        (IncrementalAlterConfigsRequest, JSON, b'{"resources": [' + items(b"[],") + b"[]]}", PARTS),
        (CreateTopicsRequest, JSON, b"{%b}" % b",".join(b'"%x":0' % n for n in range(700_000)), PARTS),
        (
            CreateTopicsRequest,
            JSON,
            b"{%b}" % b",".join(b'"%x":0' % n for n in range(400_000)),
            "body: 400001 problems, too many to name one",
        ),
        (BrokerHeartbeatRequest, MSGPACK, b"\xdd" + MILLIONS.to_bytes(4, "big") + items(b"\x80"), LISTS),
        (BrokerHeartbeatRequest, MSGPACK, b"\xdd" + MILLIONS.to_bytes(4, "big") + items(b"\x90"), LISTS),
        (
            BrokerHeartbeatRequest,
            MSGPACK,
            b"\xdf" + (1_000_000).to_bytes(4, "big") + b"".join(b"\xa6%06d\xc0" % n for n in range(1_000_000)),
            "the body is no msgpack: 1000000 exceeds max_map_len(64)",
        ),
    ],
    ids=["numbers", "objects", "lists", "keys", "some keys", "packed maps", "packed lists", "packed keys"],
)
def test_body_of_millions_of_parts_is_refused_for_how_many_they_are(
    model: type[BaseModel], media: str, body: bytes, says: str
) -> None:
    with pytest.raises(HttpRefusal) as refused:
        decode_body(model, body, media)
    # Whoever made the parts would tell of the first that is wrong.
    assert (refused.value.status, refused.value.message) == (400, says)


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_largest_request_that_brokers_make_is_taken(media: str) -> None:
    """10,000 partitions, each with nine brokers in sync."""
    isr = [BrokerState(broker_id=broker, broker_epoch=2**40 + broker) for broker in range(9)]
    partitions = [
        AlterPartitionData(partition_index=n, leader_epoch=1, new_isr_with_epochs=isr, partition_epoch=2)
        for n in range(10_000)
    ]
    topic = AlterPartitionTopic(topic_id=bytes(16), partitions=partitions)
    request = AlterPartitionRequest(broker_id=1, broker_epoch=2, topics=[topic])
    body = request.model_dump_json().encode() if media == JSON else msgpack.packb(request.model_dump())
    assert decode_body(AlterPartitionRequest, body, media) == request
