"""`quorate history` of a cluster that ran: what its controllers wrote down about who asked."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually


async def lines_of(*arguments: str) -> list[str]:
    """What is told, without the line of heads."""
    ended = await alone("history", *arguments)
    assert (ended.code, ended.err) == (exit_codes.DONE, ""), ended
    return ended.out.splitlines()[1:]


async def test_history_names_event_and_principal_of_a_change(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 1, 1, is_secured=False) as cluster:
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        async with ControllerClient(cluster.plan.controller_urls, principal="User:ana") as client:
            await client.create_topics(CreateTopicsRequest(topics=[topic]))
            await client.labels.set("topic:orders", "acme/schema", "7")
        directory = str(controller_directory(cluster.directory, cluster.plan.controllers[0]))
        live = await alone("history", "topic", "orders", "--from", cluster.plan.controller_urls[0], "--json")
        assert (live.code, live.err) == (exit_codes.DONE, "")
        happened = await alone("timeline", "--controllers", cluster.plan.controller_urls[0], "--json")
        events = [json.loads(line) for line in happened.out.splitlines()]
        assert [(event["kind"], event["brokers"]) for event in events] == [("registered", [11]), ("unfenced", [11])]
        wrong = await alone("incidents", "--controllers", cluster.plan.controller_urls[0])
        assert (wrong.code, wrong.out.splitlines()[1]) == (exit_codes.DONE, "  No incidents.")
        await cluster.stop()
        told = await alone("history", "topic", "orders", "--from", directory, "--json")
        steps = [json.loads(line) for line in told.out.splitlines()]
        assert (told.code, told.out[: len(live.out)]) == (exit_codes.DONE, live.out)
        asked = [step for step in steps if step["event"] == "create_topics"]
        assert {(step["principal"], step["address"]) for step in asked} == {("User:ana", "127.0.0.1")}
        assert all(step["request_id"] for step in asked)
        assert [change["part"] for step in asked for change in step["changes"]] == ["topics", "topics", "partitions"]
        assert all(step["event"] is not None for step in steps)
        shown_words = [line.split()[2:] for line in await lines_of("topic", "orders", "--from", directory)]
        effect = ["topic", "orders", "created:", "1", "partition", "x", "1"]
        assert ["User:ana", "create_topics", asked[0]["request_id"], *effect] in shown_words
        bos = await alone("history", "--by", "User:bo", "--from", directory)
        assert (bos.code, bos.out) == (exit_codes.DONE, "")
        assert bos.err == "quorate: the log tells of no change of anything that was asked for\n"
        hers = await lines_of("--by", "ana", "--from", directory)
        assert [line.split()[3] for line in hers] == ["create_topics", "alter_labels"]
        labelled = await alone("history", "label", "topic:orders", "--full", "--from", directory)
        assert "  + labels topic:orders: acme/schema 7\n" in labelled.out
        assert "alter_labels by User:ana (127.0.0.1, " in labelled.out
        assert labelled.out in (await alone("history", "topic", "orders", "--full", "--from", directory)).out
        shown = (await alone("history", "broker", "11", "--full", "--from", directory)).out
        assert "register_broker by User:ANONYMOUS (127.0.0.1, " in shown
        never = await alone("history", "topic", "nope", "--from", directory)
        assert (never.code, never.out, never.err) == (
            exit_codes.DONE,
            "",
            "quorate: the log tells of no change of topic nope\n",
        )
        wrong = await alone("history", "planet", "mars", "--from", directory)
        assert (wrong.code, "'planet mars' is none of" in wrong.said) == (exit_codes.USAGE, True)


async def test_history_of_a_running_quorum_asks_all_its_controllers(tmp_path: Path) -> None:
    """Ana's request went to a leader that is gone; Bo's, by a standby, to its successor."""
    async with running_cluster(tmp_path / "var", 3, 1, is_secured=False) as cluster:
        first = (await cluster.client.describe_quorum()).active_id
        assert first is not None
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        async with ControllerClient(cluster.plan.controller_urls, principal="User:ana") as client:
            await client.create_topics(CreateTopicsRequest(topics=[topic]))
        others = [f"127.0.0.1:{c.http_port}" for c in cluster.plan.controllers if c.id != first]
        asked = ("history", "topic", "orders", "--json", "--controllers")
        before = [json.loads(line) for line in (await alone(*asked, ",".join(others))).out.splitlines()]
        assert {(step["decided_by"], step["principal"], step["why_unknown"]) for step in before} == {
            (first, "User:ana", None)
        }
        cluster.controllers[first].kill()
        async with ControllerClient(others, principal="User:bo") as client:

            async def is_led() -> bool:
                return (await client.describe_quorum()).active_id not in (first, None)

            await eventually(is_led, "another controller leads")
            await client.delete_topic("orders")
        after = await alone(*asked, ",".join(others))
        steps = [json.loads(line) for line in after.out.splitlines()]
        assert (after.code, f"controller {first} does not say who asked it" in after.err) == (exit_codes.DONE, True)
        assert [(step["base_offset"], step["changes"]) for step in steps[: len(before)]] == [
            (step["base_offset"], step["changes"]) for step in before
        ]
        assert {(step["event"], step["why_unknown"]) for step in steps[: len(before)]} == {
            (None, f"it was decided by controller {first}, which does not answer")
        }
        hers = await alone("history", "--by", "ana", "--controllers", ",".join(others))
        assert (hers.code, hers.out) == (exit_codes.REFUSED, "")
        assert f"quorate: controller {first} does not say who asked it: " in hers.err
        assert " by controllers that do not say who asked; history --full names them\n" in hers.err
        assert hers.err.endswith("quorate: nothing is known to be asked for by ana\n")
        his = await alone("history", "--by", "bo", "--controllers", ",".join(others))
        assert (his.code, "delete_topics" in his.out, "quorate: left out: " in his.err) == (exit_codes.DONE, True, True)
        last = steps[-1]
        assert (last["event"], last["principal"]) == ("delete_topics", "User:bo")
        assert last["decided_by"] not in (first, None)
        shown = (await alone(*asked[:3], "--full", *asked[4:], ",".join(others))).out
        assert f"(not known by which event: it was decided by controller {first}, which does not answer)" in shown
        assert "delete_topics by User:bo (127.0.0.1, " in shown


async def test_history_ends_with_its_code_where_no_controller_answers() -> None:
    """Port 1 is nobody's."""
    places = (("--controllers", "127.0.0.1:1"), ("--from", "http://127.0.0.1:1"))
    for command, place in product(("history", "timeline", "incidents"), places):
        ended = await alone(command, *place)
        assert (ended.code, ended.out) == (exit_codes.UNREACHABLE, "")
