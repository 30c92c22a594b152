"""Deleted topics over real sockets: until brokers say that nothing is left, across failovers, and in the metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest, ReplicaAssignment
from quorate.scripts.terminal import exit_codes
from tests.integration.broker_stage import playing, stage_with_short_sessions
from tests.integration.commands import answered, command
from tests.integration.http_stage import Bad, Stage, stage
from tests.waiting import eventually

DELETIONS: Final = "/v1/topic-deletions"
HEARTBEAT: Final = "/v1/broker-rpc/heartbeat"
GAUGES: Final = (
    "topics_to_delete",
    "replicas_to_delete",
    "topics_ineligible_to_delete",
    "replicas_ineligible_to_delete",
)


async def deleted(s: Stage) -> tuple[str, dict[int, int]]:
    """A topic on brokers 1 and 2 is created and deleted; its id, and the brokers' epochs."""
    epochs = {broker: await s.register(1, broker) for broker in (1, 2)}
    assignment = [{"partition_index": 0, "broker_ids": [1, 2]}]
    status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "t", "assignments": assignment}]})
    assert status == 200, reply
    status, _, _ = await s.ask(1, "DELETE", "/v1/topics/t")
    assert status == 200
    return reply["topics"][0]["topic_id"], epochs


def heartbeat(s: Stage, broker: int, epoch: int, *topics: Any) -> dict[str, Any]:
    offset = s.quorum.committed
    undeleted = {"metadata_offset": offset, "topics": list(topics)}
    return {"broker_id": broker, "broker_epoch": epoch, "current_metadata_offset": offset, "undeleted": undeleted}


async def gauges(s: Stage, node_id: int) -> list[float]:
    async with s.session.get(s.members[node_id].url + "/metrics") as answer:
        lines = dict(line.rsplit(" ", 1) for line in (await answer.text()).splitlines() if not line.startswith("#"))
    return [float(lines[f"quorate_{name}_count"]) for name in GAUGES]


async def test_deletion_is_shown_by_any_controller_until_nothing_is_left() -> None:
    async with stage(2) as s:
        topic_id, epochs = await deleted(s)
        for node_id in (1, 2):
            status, reply, _ = await s.ask(node_id, "GET", DELETIONS)
            assert (status, reply["is_active"], reply["forgotten"]) == (200, True, 0)
            (topic,) = reply["topics"]
            assert (topic["name"], topic["topic_id"]) == ("t", topic_id)
            states = {one["broker_id"]: (one["state"], one["partitions"]) for one in topic["replicas"]}
            assert states == {1: ("ReplicaDeletionStarted", [0]), 2: ("ReplicaDeletionStarted", [0])}
        assert await gauges(s, 1) == [1, 2, 0, 0]
        assert await gauges(s, 2) == [0, 0, 0, 0], "only the active controller knows"

        left = {"topic_id": topic_id, "name": "t", "ineligible": [0]}
        assert (await s.ask(2, "POST", HEARTBEAT, heartbeat(s, 1, epochs[1], left)))[0] == 200
        assert (await s.ask(2, "POST", HEARTBEAT, heartbeat(s, 2, epochs[2])))[0] == 200
        assert await gauges(s, 1) == [1, 1, 1, 1]
        _, reply, _ = await s.ask(1, "GET", DELETIONS)
        lines = [(one["broker_id"], one["state"], one["waits_for"]) for one in reply["topics"][0]["replicas"]]
        assert lines == [
            (1, "ReplicaDeletionIneligible", "the log directory, which failed"),
            (2, "ReplicaDeletionSuccessful", None),
        ]
        assert (await s.ask(1, "POST", HEARTBEAT, heartbeat(s, 1, epochs[1])))[0] == 200
        assert (await s.ask(1, "GET", DELETIONS))[1]["topics"] == []
        assert await gauges(s, 1) == [0, 0, 0, 0]


async def test_new_active_controller_hears_of_it_with_the_next_heartbeat() -> None:
    async with stage(2) as s:
        topic_id, epochs = await deleted(s)
        await s.elect(2)
        assert (await s.ask(2, "GET", DELETIONS))[1]["topics"] == []
        left = {"topic_id": topic_id, "name": "t", "ineligible": [0]}
        assert (await s.ask(1, "POST", HEARTBEAT, heartbeat(s, 1, epochs[1], left)))[0] == 200
        _, reply, _ = await s.ask(1, "GET", DELETIONS)
        (topic,) = reply["topics"]
        assert (topic["name"], topic["offset"]) == ("t", None)
        _, own, _ = await s.ask(1, "GET", DELETIONS + "?local=true")
        assert (own["is_active"], own["topics"]) == (False, [])


async def test_brokers_of_ours_say_that_nothing_is_left_and_one_that_was_killed_is_waited_for() -> None:
    async with (
        stage_with_short_sessions() as built,
        playing("1-2", built.urls) as played,
        ControllerClient(built.urls) as client,
    ):
        async with playing("3", built.urls) as mortal:
            await played.ready()
            await mortal.ready()
            for name, brokers in (("on-all", [1, 2, 3]), ("on-living", [1, 2])):
                topic = CreatableTopic(
                    name=name, assignments=[ReplicaAssignment(partition_index=0, broker_ids=brokers)]
                )
                await client.create_topics(CreateTopicsRequest(topics=[topic]))
            mortal.task.cancel()
        await client.delete_topic("on-living")
        await client.delete_topic("on-all")

        async def left() -> dict[str, set[int]]:
            _, reply, _ = await built.ask(1, "GET", DELETIONS)
            return {
                topic["name"]: {
                    one["broker_id"] for one in topic["replicas"] if one["state"] != "ReplicaDeletionSuccessful"
                }
                for topic in reply["topics"]
            }

        async def waits_for_the_dead() -> bool:
            return await left() == {"on-all": {3}}

        async def is_over() -> bool:
            return await left() == {}

        await eventually(waits_for_the_dead, "only the broker that was killed is waited for")
        async with playing("3", built.urls) as again:
            await again.ready()
            await eventually(is_over, "nothing is left anywhere")


async def test_command_shows_what_is_left() -> None:
    async with stage(2) as s:
        topic_id, epochs = await deleted(s)
        url = s.urls[1]
        left = {"topic_id": topic_id, "name": "t", "ineligible": [0]}
        assert (await s.ask(2, "POST", HEARTBEAT, heartbeat(s, 1, epochs[1], left)))[0] == 200
        shown = await command(url, "topics", "deletions")
        assert (shown.code, shown.err) == (exit_codes.DONE, "")
        assert shown.cells[0] == ["TOPIC", "BROKER", "STATE", "REPLICAS", "PARTITIONS", "WAITS", "FOR"]
        assert shown.cells[1:] == [
            ["t", "1", "ineligible", "1", "0", *["the", "log", "directory,", "which", "failed"]],
            ["t", "2", "started", "1", "0", "-"],
        ]
        as_json = answered((await command(url, "topics", "deletions", "--json")).out)
        assert as_json == (await s.ask(1, "GET", DELETIONS))[1]
        for broker in (1, 2):
            await s.ask(1, "POST", HEARTBEAT, heartbeat(s, broker, epochs[broker]))
        nothing = await command(url, "topics", "deletions")
        assert nothing == (exit_codes.DONE, "Nothing is known to be left of deleted topics.\n", "")
        assert (await command(url, "topics", "deletions", "all")).code == exit_codes.USAGE
        await s.elect(None)
        unknown = await command(url, "topics", "deletions")
        assert (unknown.code, unknown.out) == (exit_codes.UNREACHABLE, "")
        assert "only the active controller knows" in unknown.err


@pytest.mark.parametrize("node_id", [1, 2])
async def test_bad_reports_are_refused_and_change_nothing(node_id: int) -> None:
    async with stage(2) as s:
        topic_id, epochs = await deleted(s)
        one = {"topic_id": topic_id, "name": "t", "deleting": [0]}
        form = [
            ("text for a report", "x", "should be"),
            ("no offset", {"topics": []}, "must be given"),
            ("text for an offset", {"metadata_offset": "1", "topics": []}, "valid integer"),
            ("huge offset", {"metadata_offset": 2**63, "topics": []}, "less than or equal"),
            ("null for topics", {"metadata_offset": 1, "topics": None}, "valid array"),
            ("no topic id", [{"name": "t"}], "must be given"),
            ("text for a topic id", [one | {"topic_id": "t"}], "22 characters"),
            ("null for a name", [one | {"name": None}], "valid string"),
            ("long name", [one | {"name": "t" * 250}], "at most 249"),
            ("text for partitions", [one | {"deleting": "0"}], "valid array"),
            ("null for a partition", [one | {"deleting": [None]}], "valid integer"),
            ("negative partition", [one | {"deleting": [-1]}], "greater than or equal"),
            ("huge partition", [one | {"ineligible": [2**31]}], "less than or equal"),
            ("too many partitions", [one | {"deleting": list(range(10_001))}], "at most 10000"),
            ("partition in both lists", [one | {"ineligible": [0]}], "a partition is named twice"),
            ("topic twice", [one, one], "a topic is named twice"),
            ("too many topics", [one] * 1_001, "at most 1000"),
            ("unknown field", [one | {"gone": True}], "is not known"),
        ]
        bad = [
            Bad(name, "POST", HEARTBEAT, heartbeat(s, 1, epochs[1], *said) if isinstance(said, list)
                else heartbeat(s, 1, epochs[1]) | {"undeleted": said}, 400, "INVALID_REQUEST", says)
            for name, said, says in form
        ]  # fmt: skip
        unknown, stale = heartbeat(s, 99, 1), heartbeat(s, 1, epochs[1] - 1)
        bad += [
            Bad("unknown broker", "POST", HEARTBEAT, unknown, 409, "STALE_BROKER_EPOCH", "before registration"),
            Bad("stale epoch", "POST", HEARTBEAT, stale, 409, "STALE_BROKER_EPOCH", "Expected broker epoch"),
        ]
        before = (s.quorum.log_end_offset, s.members[1].controller.stable, (await s.ask(1, "GET", DELETIONS))[1])
        for case in bad:
            status, reply, _ = await s.ask(node_id, case.method, case.path, case.body)
            assert (status, reply["error"]) == (case.status, case.error), (case.name, reply)
            assert case.says in reply["message"], (case.name, reply)
        assert before == (
            s.quorum.log_end_offset,
            s.members[1].controller.stable,
            (await s.ask(1, "GET", DELETIONS))[1],
        )


async def test_deletion_that_the_settings_forbid_is_refused_before_any_topic_is_looked_for() -> None:
    """Kafka's ``delete.topic.enable``."""
    async with stage(1) as s:
        role = s.members[1].role
        role.config = replace(role.config, topics_can_be_deleted=False)
        await s.register(1, 11)
        assert (await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "orders"}]}))[0] == 200
        end = s.quorum.committed
        by_id = {"topic_ids": ["AAAAAAAAAAAAAAAAAAAAAg"]}
        for method, path, body in (
            ("DELETE", "/v1/topics/orders", None),
            ("DELETE", "/v1/topics/none", None),
            ("POST", "/v1/topics/delete", by_id),
        ):
            status, reply, _ = await s.ask(1, method, path, body)
            assert (status, reply["error"]) == (403, "TOPIC_DELETION_DISABLED")
            assert "topics.can_be_deleted" in reply["message"]
        assert s.quorum.committed == end
