"""Labels over HTTP: changes with conditions, pages, the past, refusals that change nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorate.controller.api.models import ErrorReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.targets import TARGET_BYTES_MAX
from quorate.controller.protocol.labels import AlterLabelsRequest, LabelEntry
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.snapshots.image_digest import digest_image
from tests.integration.http_stage import Bad, stage

PATH = "/v1/labels"
KEY = "acme/schema"


def label(resource: Any = "cluster", key: Any = KEY, value: Any = "1") -> dict[str, Any]:
    return {"resource": resource, "key": key, "value": value}


async def test_client_sets_compares_and_reads() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        assert (await client.labels.set("record:routing", KEY, "1")).changed == 1
        await client.labels.compare_and_set("record:routing", KEY, "1", "2")
        await client.labels.compare_and_set("record:routing", "acme/owner", None, "")
        with pytest.raises(ApiError) as refused:
            await client.labels.compare_and_set("record:routing", KEY, "1", "3")
        assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
        assert refused.value.details["present"] == "2"
        assert await client.labels.of("record:routing") == {"acme/owner": "", KEY: "2"}
        await client.labels.compare_and_set("record:routing", "acme/owner", "", None)
        assert [one.key async for one in client.labels.all(kind="record")] == [KEY]
        async with s.session.get(f"{s.members[1].url}/metrics") as answer:
            assert "\nquorate_labels 1.0\n" in await answer.text()


@pytest.mark.parametrize("resource", ["bogus", "broker:x", "topic:..", "partition:orders", "record:"])
async def test_labels_of_what_can_have_none_are_refused_by_its_form(resource: str) -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        with pytest.raises(
            ApiError, match=r"can have no labels: it is none of cluster, topic:NAME|Topic name"
        ) as refused:
            await client.labels.of(resource)
        assert refused.value.code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert await client.labels.of("topic:not-there") == {}


async def test_of_programs_that_compare_and_set_at_once_each_step_is_won_by_one() -> None:
    """Each of them counts up; no count is lost, and no step is won twice."""
    async with stage() as s, ControllerClient(s.urls) as client:
        await client.labels.set("cluster", KEY, "0")

        async def count_up(times: int) -> int:
            lost = 0
            while times:
                found = (await client.labels.of("cluster"))[KEY]
                try:
                    await client.labels.compare_and_set("cluster", KEY, found, str(int(found) + 1))
                    times -= 1
                except ApiError as error:
                    assert error.code is ErrorCode.INVALID_UPDATE_VERSION  # noqa: PT017 - it may be won at once
                    lost += 1
            return lost

        lost = await asyncio.gather(*(count_up(5) for _ in range(4)))
        assert await client.labels.of("cluster") == {KEY: "20"}
        assert sum(lost) > 0


async def test_pages_are_followed() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        names = [f"record:{number:04}" for number in range(1_200)]
        for part in (names[:1_000], names[1_000:]):
            changes = [LabelEntry(resource=name, key=KEY, value="1") for name in part]
            await client.labels.alter(AlterLabelsRequest(changes=changes))
        first = await client.labels.describe()
        assert (len(first.labels), first.count, first.next_after) == (1_000, 1_200, f"record:0999/{KEY}")
        assert [one.resource async for one in client.labels.all()] == names
        assert len((await client.labels.describe(limit=7, after=f"record:0500/{KEY}")).labels) == 7


BAD = [
    Bad("no changes", "POST", PATH, {}, 400, "INVALID_REQUEST", "changes: must be given"),
    Bad("unknown field", "POST", PATH, {"changes": [], "more": 1}, 400, "INVALID_REQUEST", "more"),
    Bad("number", "POST", PATH, {"changes": [label(value=1)]}, 400, "INVALID_REQUEST", "string"),
    Bad("no value", "POST", PATH, {"changes": [{"resource": "cluster", "key": KEY}]}, 400, "INVALID_REQUEST", "value"),
    Bad("empty", "POST", PATH, {"changes": [label(resource="")]}, 400, "INVALID_REQUEST", "at least 1"),
    Bad("too many", "POST", PATH, {"changes": [label(key=f"a/{n}") for n in range(1_001)]}, 400, "INVALID_REQUEST",
        "at most 1000"),
    Bad("conditions", "POST", PATH, {"changes": [], "conditions": [label()] * 1_001}, 400, "INVALID_REQUEST",
        "at most 1000"),
    Bad("kind", "POST", PATH, {"changes": [label("shard:1")]}, 400, "INVALID_REQUEST", "'shard:1' can have no labels"),
    Bad("key", "POST", PATH, {"changes": [label(key="x")]}, 400, "INVALID_REQUEST", "'x' is no key of a label"),
    Bad("value", "POST", PATH, {"changes": [label(value="x" * 4_097)]}, 400, "INVALID_REQUEST", "4096 is the most"),
    Bad("twice", "POST", PATH, {"changes": [label(), label()]}, 400, "INVALID_REQUEST", "named by 2 changes"),
    Bad("topic", "POST", PATH, {"changes": [label("topic:a b")]}, 422, "INVALID_TOPIC_EXCEPTION", "'a b'"),
    Bad("no topic", "POST", PATH, {"changes": [label("topic:no")]}, 404, "UNKNOWN_TOPIC_OR_PARTITION", "'no'"),
    Bad("no broker", "POST", PATH, {"changes": [label("broker:9")]}, 404, "BROKER_ID_NOT_REGISTERED", "id 9"),
    Bad("condition", "POST", PATH, {"changes": [label()], "conditions": [label(value="7")]}, 409,
        "INVALID_UPDATE_VERSION", "must be '7'"),
    Bad("many", "POST", PATH, {"changes": [label(key=f"a/{n}") for n in range(129)]}, 422, "POLICY_VIOLATION",
        "cluster would have 129 labels; 128 is the most"),
    Bad("unknown kind", "GET", f"{PATH}?kind=shard", None, 400, "INVALID_REQUEST", "kind"),
    Bad("limit", "GET", f"{PATH}?limit=0", None, 400, "INVALID_REQUEST", "limit"),
    Bad("limit", "GET", f"{PATH}?limit=1001", None, 400, "INVALID_REQUEST", "limit"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.method} {bad.name}")
async def test_refusal_names_value_and_rule_and_changes_nothing(bad: Bad) -> None:
    async with stage() as s:
        before = digest_image(s.members[1].controller.stable).text
        status, reply, _ = await s.ask(1, bad.method, bad.path, bad.body)
        refusal = ErrorReply.model_validate(reply)
        assert (status, refusal.error) == (bad.status, bad.error)
        assert bad.says in refusal.message
        assert digest_image(s.members[1].controller.stable).text == before


async def test_controllers_read_addresses_as_long_as_clients_send_them() -> None:
    async with stage() as s, ControllerClient([s.members[1].url]) as client:
        room = TARGET_BYTES_MAX - len("/v1/topics?after=&limit=1000")
        with pytest.raises(ApiError, match="at most 249 characters"):  # a controller's rule: it has read all of it
            await client.list_topics(after="x" * room)
        with pytest.raises(LimitExceeded):
            await client.list_topics(after="x" * (room + 1))
