"""`X-Quorate-Expected-Facts`: a change is decided only while what it goes by is as its sender has read it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from quorate.controller.api.answers.plan_models import PlannedChange, digest_of_facts
from quorate.controller.client.attempts import ConditionalSender
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    UnregisterBrokerRequest,
)
from quorate.controller.reads.answer_turns import ANSWERS_MAX
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image_digest import ImageDigest, digest_image
from tests.integration.http_stage import Stage, stage

HEADER = "X-Quorate-Expected-Facts"
GROWTH = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=3)])
SOME = "0" * 64


def state(s: Stage) -> ImageDigest:
    return digest_image(s.members[1].controller.stable)


async def expected(client: ControllerClient) -> str:
    return digest_of_facts((await client.answers.facts(PlannedChange(create_partitions=GROWTH))).facts)


async def grow(client: ControllerClient, digest: str) -> None:
    async with ControllerClient((), sender=ConditionalSender(client.sender, digest, "the-growth")) as conditional:
        await conditional.create_partitions(GROWTH)


async def made(s: Stage) -> None:
    """Topic orders with one partition."""
    await s.register(1, 11, None)
    async with ControllerClient(s.urls) as client:
        await client.create_topics(CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1)]))


@pytest.mark.parametrize("node_id", [1, 2], ids=["active", "by a standby"])
async def test_change_is_refused_where_its_facts_have_changed_and_made_where_they_have_not(node_id: int) -> None:
    async with stage() as s, ControllerClient([s.members[node_id].url]) as client:
        await made(s)
        old = await expected(client)
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=2)])
        await client.create_partitions(more)
        before = state(s)
        with pytest.raises(ApiError, match="no longer so") as refused:
            await grow(client, old)
        assert (refused.value.code, state(s)) == (ErrorCode.INVALID_UPDATE_VERSION, before)
        await grow(client, await expected(client))
        assert len((await client.describe_topic("orders")).topic.partitions) == 3


async def test_condition_is_of_one_request_and_not_of_the_next_on_its_connection() -> None:
    async with stage(1) as s:
        await made(s)
        topic: dict[str, Any] = {"topics": [{"name": "orders", "count": 2}]}
        refused, _, _ = await s.ask(1, "POST", "/v1/topics/partitions", topic, headers={HEADER: SOME})
        taken, _, _ = await s.ask(1, "POST", "/v1/topics/partitions", topic)
        assert (refused, taken) == (409, 200)


@pytest.mark.parametrize(
    ("method", "path", "body", "digest", "says"),
    [
        ("POST", "/v1/topics/partitions", {"topics": []}, "x", "64 hexadecimal digits"),
        ("POST", "/v1/topics/partitions", {"topics": []}, SOME.upper().replace("0", "A"), "64 hexadecimal digits"),
        ("GET", "/v1/topics/orders", None, SOME, "for changes that can be planned"),
        ("GET", "/v1/brokers/11", None, SOME, "for changes that can be planned"),
        ("DELETE", "/v1/topics/orders", None, SOME, "for changes that can be planned"),
        ("POST", "/v1/delegation-tokens", {"renewers": [], "max_lifetime_ms": 1}, SOME, "for changes that can be"),
        ("POST", "/v1/leader-elections", {"election_type": "PREFERRED"}, SOME, "name the partitions"),
    ],
)
async def test_condition_that_cannot_be_is_refused_and_changes_nothing(
    method: str, path: str, body: Any, digest: str, says: str
) -> None:
    async with stage(1) as s:
        await made(s)
        before = state(s)
        status, reply, _ = await s.ask(1, method, path, body, headers={HEADER: digest})
        assert (status, reply["error"], state(s)) == (400, "INVALID_REQUEST", before), reply
        assert says in reply["message"]


async def test_end_of_a_registration_goes_by_its_broker() -> None:
    async with stage(1) as s:
        await made(s)
        refused, reply, _ = await s.ask(1, "DELETE", "/v1/brokers/11", headers={HEADER: SOME})
        assert (refused, reply["error"]) == (409, "INVALID_UPDATE_VERSION")
        async with ControllerClient(s.urls) as client:
            change = PlannedChange(unregister_broker=UnregisterBrokerRequest(broker_id=11))
            facts = (await client.answers.facts(change)).facts
        assert facts[0].values["replicas"] == 1
        status, _, _ = await s.ask(1, "DELETE", "/v1/brokers/11", headers={HEADER: digest_of_facts(facts)})
        assert status == 200


async def test_facts_are_read_in_the_turns_of_all_answers() -> None:
    """However many ask for them, one thread reads them, and no more wait than for other answers."""
    may_end = threading.Event()
    async with stage(1) as s, ControllerClient(s.urls) as client:
        await made(s)
        turns = s.members[1].node.turns
        line = [asyncio.create_task(turns.answer(None, 60_000, lambda _: may_end.wait(60))) for _ in range(ANSWERS_MAX)]
        try:
            await asyncio.sleep(0)
            refused, reply, _ = await s.ask(1, "POST", "/v1/answers/facts", {"create_partitions": GROWTH.model_dump()})
        finally:
            may_end.set()
            await asyncio.gather(*line)
        assert (refused, reply["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert len(await expected(client)) == 64
