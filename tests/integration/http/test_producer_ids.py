"""AllocateProducerIds over HTTP: from any controller, in JSON and msgpack, and refused without a change."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import AllocateProducerIdsRequest
from tests.integration.http_stage import Bad, stage

ALLOCATE: Final = "/v1/broker-rpc/allocate-producer-ids"


async def test_brokers_get_blocks_from_any_controller_and_the_cluster_shows_the_next_id() -> None:
    async with stage(2) as s, ControllerClient(s.urls) as client:
        epochs = {broker: await s.register(1, broker) for broker in (11, 12)}
        status, reply, _ = await s.ask(2, "POST", ALLOCATE, {"broker_id": 11, "broker_epoch": epochs[11]})
        assert (status, reply) == (200, {"producer_id_start": 0, "producer_id_len": 1_000})
        requests = [AllocateProducerIdsRequest(broker_id=id_, broker_epoch=epoch) for id_, epoch in epochs.items()]
        blocks = await asyncio.gather(*(client.allocate_producer_ids(request) for request in requests * 10))
        assert sorted(block.producer_id_start for block in blocks) == list(range(1_000, 21_000, 1_000))
        assert (await client.describe_cluster()).next_producer_id == 21_000


async def test_bad_requests_are_refused_and_change_nothing() -> None:
    async with stage(2) as s:
        epoch = await s.register(1, 11)
        good: dict[str, Any] = {"broker_id": 11, "broker_epoch": epoch}
        form = [
            ("no body", {}, "must be given"),
            ("list", [], "should be an object"),
            ("text for an id", good | {"broker_id": "11"}, "valid integer"),
            ("null for an id", good | {"broker_id": None}, "valid integer"),
            ("negative id", good | {"broker_id": -1}, "greater than or equal"),
            ("huge id", good | {"broker_id": 2**31}, "less than or equal"),
            ("no epoch", {"broker_id": 11}, "must be given"),
            ("text for an epoch", good | {"broker_epoch": "1"}, "valid integer"),
            ("null for an epoch", good | {"broker_epoch": None}, "valid integer"),
            ("fraction for an epoch", good | {"broker_epoch": 1.5}, "integer"),
            ("huge epoch", good | {"broker_epoch": 2**63}, "less than or equal"),
            ("unknown field", good | {"count": 5}, "is not known"),
        ]
        stale = [
            ("unknown broker", good | {"broker_id": 99}, "No broker registration found"),
            ("stale epoch", good | {"broker_epoch": epoch - 1}, "Expected broker epoch"),
            ("negative epoch", good | {"broker_epoch": -1}, "Expected broker epoch"),
        ]
        cases = [Bad(name, "POST", ALLOCATE, body, 400, "INVALID_REQUEST", says) for name, body, says in form]
        cases += [Bad(name, "POST", ALLOCATE, body, 409, "STALE_BROKER_EPOCH", says) for name, body, says in stale]
        end, image = s.quorum.log_end_offset, s.members[1].controller.stable
        for bad in cases:
            for node_id in (1, 2):
                status, reply, _ = await s.ask(node_id, bad.method, bad.path, bad.body)
                assert (status, reply["error"]) == (bad.status, bad.error), (bad.name, reply)
                assert bad.says in reply["message"], (bad.name, reply)
        assert (s.quorum.log_end_offset, s.members[1].controller.stable) == (end, image)
