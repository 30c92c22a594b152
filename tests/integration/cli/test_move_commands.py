"""Brokers drained and decommissioned, replication factors set, a cluster balanced, against real HTTP servers."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.controller.answers.what_if import rehearsed
from quorate.controller.api.answers.answer_models import WhatIfStep
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.scripts.cli.moves.waves import MoveRun
from quorate.scripts.terminal import asking, exit_codes
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from tests.integration.commands import Ended, Terminal, alone, end_of, start, terminal
from tests.integration.swallowing_proxy import swallowing_proxy
from tests.unit.controller.answer_stage import CONFIG
from tests.waiting import eventually

M3 = Path(__file__).parents[2] / "data" / "kafka" / "static" / "m3" / "log"
BROKERS = {11: "a", 12: "b", 13: "a", 14: "b"}


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    """Six partitions of two replicas, one in each rack; nobody copies anything unless a test says so."""
    async with terminal(BROKERS) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11,11:14,13:12,14:13,13:14")
        yield typed


async def replicas(user: Terminal, topic: str = "orders") -> list[list[int]]:
    _, reply, _ = await user.stage.ask(1, "GET", f"/v1/topics/{topic}")
    return [one["replica_nodes"] for one in reply["topic"]["partitions"]]


async def open_now(user: Terminal) -> list[str]:
    _, reply, _ = await user.stage.ask(1, "GET", "/v1/partition-reassignments")
    return [f"{topic['name']}-{one['partition_index']}" for topic in reply["topics"] for one in topic["partitions"]]


async def run_with_copies(user: Terminal, *arguments: str) -> tuple[Ended, int]:
    """Run a command while leaders copy what it moves; and the most moves that were open at once."""
    most = 0
    async with asyncio.TaskGroup() as group:
        running = group.create_task(user.run(*arguments))

        async def has_ended() -> bool:
            nonlocal most
            found = await open_now(user)
            most = max(most, len(found))
            for partition in found:
                await user.catch_up(partition)
            return running.done()

        await eventually(has_ended, "the command has ended")
    return running.result(), most


async def test_document_of_a_move_that_is_planned_stands_alone_on_standard_output(
    user: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    planned = await user.run("brokers", "drain", "11", "--plan", str(file), "--json")
    assert planned.code == 0
    assert len(json.loads(planned.out)["plan"]["moves"]) == 3
    assert "Nothing was changed. The plan is in " in planned.err
    assert json.loads(file.read_text())["steps"]


async def test_drain_moves_what_is_on_the_broker_and_nothing_else(user: Terminal) -> None:
    before = await replicas(user)
    planned = await user.run("brokers", "drain", "11", "--dry-run")
    assert (planned.code, planned.out.splitlines()[0]) == (0, "3 partitions to change; 3 replicas to be copied.")
    assert ["11", "active", "a", "drained", "3", "0", "(-3)"] in planned.cells
    assert await open_now(user) == []
    asked = await user.run("brokers", "drain", "11")
    assert (asked.code, "to drain broker 11: 3 partitions to change, say --yes" in asked.said) == (2, True)

    ended, most = await run_with_copies(user, "brokers", "drain", "11", "--yes", "--at-once", "1")
    assert (ended.code, ended.out.splitlines()[-1], most) == (0, "Broker 11 holds no replica.", 1)
    after = await replicas(user)
    # The other broker of its rack is the only one that keeps partitions in two racks.
    assert [sorted(row) for row in after] == [sorted(13 if one == 11 else one for one in row) for row in before]
    assert after[3:] == before[3:]
    again = await user.run("brokers", "drain", "11", "--yes")
    assert again == (exit_codes.DONE, "Broker 11 holds no replica.\n", "")


def captured(directory: Path, steps: list[WhatIfStep], name: str) -> tuple[MetadataImage, str]:
    """The captured cluster, whose broker 12 is down, after some events: its state, and a file of it."""
    image = rehearsed(load_image(M3), CONFIG, steps).image
    file = directory / name / f"{image.provenance.end_offset:020d}-{image.provenance.epoch:010d}.checkpoint"
    file.parent.mkdir()
    file.write_bytes(b"".join(checkpoint_batches(image, 0)))
    return image, str(file)


async def test_drain_of_a_captured_cluster_copies_no_more_than_the_broker_holds_and_keeps_racks(tmp_path: Path) -> None:
    """One topic has as many replicas as there are brokers: it is named, and drained once it has fewer."""
    drain = ("brokers", "drain", "13", "--dry-run", "--json", "--from")
    down = await alone(*drain, str(M3))
    assert (down.code, "12 (fenced)" in down.err) == (exit_codes.REFUSED, True), "9 partitions need it"
    assert (await alone(*drain, str(M3), "--include-fenced")).err.count("topics under_score") == 1

    catch_up = WhatIfStep(event="catch-up")
    alive = [WhatIfStep(event="start", brokers=[12]), catch_up]
    _, file = captured(tmp_path, alive, "alive")
    impossible = await alone(*drain, file)
    assert (impossible.code, impossible.out) == (exit_codes.REFUSED, "")
    assert "1 partition is to have more replicas than there are brokers that may hold them (4 for 3)" in impossible.err
    assert json.loads(impossible.err)["message"].endswith(
        "topics under_score; 3 brokers take replicas; to be emptied: broker 13"
    )

    narrower = [ReassignablePartition(partition_index=0, replicas=[11, 12, 13])]
    fewer = WhatIfStep(event="reassign", topics=[ReassignableTopic(name="under_score", partitions=narrower)])
    image, file = captured(tmp_path, [*alive, fewer, catch_up], "fewer")
    plan = json.loads((await alone(*drain, file)).out)["plan"]
    held = sum(13 in one.replicas for topic in image.topics.by_id for _, one in image.partitions.partitions_of(topic))
    assert (plan["copies"], len(plan["moves"])) == (held, held) == (1411, 1411)
    rack_of = {id_: broker.rack for id_, broker in image.cluster.brokers.items()}
    for move in plan["moves"]:
        assert 13 in move["before"]
        assert len({rack_of[one] for one in move["after"]}) >= len({rack_of[one] for one in move["before"]})
        assert {*move["before"]} - {13} <= {*move["after"]} <= {11, 12, 14}


async def test_drain_gives_nothing_to_brokers_that_are_down_or_left_out(user: Terminal) -> None:
    fence = {"broker_id": 13, "broker_epoch": user.epochs[13], "current_metadata_offset": 2**60, "want_fence": True}
    assert (await user.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", fence))[1]["is_fenced"]
    planned = json.loads((await user.run_as_it_is("brokers", "drain", "11", "--dry-run", "--json")).out)["plan"]
    assert {one["broker"]: one["role"] for one in planned["brokers"]} == {
        11: "drained", 12: "takes", 13: "keeps", 14: "takes",
    }  # fmt: skip
    assert all(13 not in set(move["after"]) - set(move["before"]) for move in planned["moves"])
    none = await user.run_as_it_is("brokers", "drain", "11", "--dry-run", "--exclude", "12,14")
    assert (none.code, none.out) == (exit_codes.REFUSED, "")
    assert none.err.endswith(
        "topics orders; 0 brokers take replicas; to be emptied: broker 11; "
        "nothing goes to broker 12 (active), 13 (fenced), 14 (active)\n"
    )
    down = json.loads(
        (await user.run_as_it_is("brokers", "drain", "11", "--dry-run", "--json", "--include-fenced")).out
    )
    assert {one["role"] for one in down["plan"]["brokers"] if one["broker"] == 13} == {"takes"}


async def interrupted_drain(user: Terminal, url: str) -> Ended:
    """Broker 11 is drained by two moves at once, until both are open."""
    process = await start(url, "brokers", "drain", "11", "--yes", "--at-once", "2")

    async def has_begun() -> bool:
        return len(await open_now(user)) == 2

    await eventually(has_begun, "two moves are open")
    process.send_signal(signal.SIGINT)
    return await end_of(process)


async def test_interrupt_leaves_what_was_begun_and_says_how_to_go_on(user: Terminal) -> None:
    ended = await interrupted_drain(user, user.stage.urls[1])
    assert ended.code == exit_codes.INTERRUPTED, ended
    assert (
        "moves under way, which go on by themselves: 2, not begun: 1; to go on: quorate brokers drain 11" in ended.err
    )
    assert len(await open_now(user)) == 2
    rest, _ = await run_with_copies(user, "brokers", "drain", "11", "--yes")
    assert rest.code == exit_codes.DONE
    assert not any(11 in row for row in await replicas(user))


async def test_interrupt_while_the_answer_is_on_its_way_tells_of_what_it_says(user: Terminal) -> None:
    async with swallowing_proxy(user.stage.urls[1]) as proxy:
        proxy.drip = 100, 0.05  # an answer is on its way for a while
        ended = await interrupted_drain(user, proxy.url)
    assert ended.code == exit_codes.INTERRUPTED, ended
    assert "moves under way, which go on by themselves: 2, not begun: 1;" in ended.err


class UnansweredClient(ControllerClient):
    """Its moves begin, and the answers never come."""

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        await super().alter_partition_reassignments(request)
        return await asyncio.Future[AlterPartitionReassignmentsResponse]()


async def test_moves_that_were_asked_for_without_an_answer_are_told_as_such(
    user: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_LAST_ANSWER_S", 0.0)
    run = MoveRun({("orders", 0): [13, 12], ("orders", 1): [12, 13], ("orders", 2): [14, 13]}, at_once=2)
    async with UnansweredClient(user.stage.urls) as client:
        running = asyncio.create_task(run.carry_out(client))

        async def has_begun() -> bool:
            return len(await open_now(user)) == 2

        await eventually(has_begun, "two moves are open")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert run.left_words == (
        "moves under way, which go on by themselves: 0, asked for without an answer: 2, not begun: 1"
    )


async def test_drain_waits_for_moves_that_somebody_else_began_meanwhile(user: Terminal) -> None:
    process = await start(user.stage.urls[1], "brokers", "drain", "11", "--yes")
    assert process.stderr is not None

    async def has_begun() -> bool:
        return len(await open_now(user)) == 3

    await eventually(has_begun, "three moves are open")
    await user.run("topics", "create", "late", "--replica-assignment", "11:12")
    moved = {"name": "late", "partitions": [{"partition_index": 0, "replicas": [13, 12]}]}
    status, reply, _ = await user.stage.ask(1, "POST", "/v1/partition-reassignments", {"topics": [moved]})
    assert status == 200, reply
    for partition in ("orders-0", "orders-1", "orders-2"):
        await user.catch_up(partition)
    told = b""
    while b"1 partition more to change or to wait for by now" not in told:
        told = await process.stderr.readline()
        assert told, await end_of(process)
    await user.catch_up("late-0")
    ended = await end_of(process)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Broker 11 holds no replica.")
    assert not any(11 in row for row in await replicas(user, "late"))


async def test_run_that_may_begin_nothing_says_whose_moves_it_waits_for(
    user: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = {"name": "orders", "partitions": [{"partition_index": 2, "replicas": [13, 14]}]}
    status, reply, _ = await user.stage.ask(1, "POST", "/v1/partition-reassignments", {"topics": [moved]})
    assert status == 200, reply
    run = MoveRun({("orders", 0): [13, 12]}, at_once=1)
    said: list[str] = []

    async def is_told() -> bool:
        said.append(capsys.readouterr().err)
        return "those of others: orders-2\n" in "".join(said)

    async with ControllerClient(user.stage.urls) as client, asyncio.TaskGroup() as group:
        running = group.create_task(run.carry_out(client))
        await eventually(is_told, "the move of somebody else is named")
        assert (run.under_way, running.done()) == (set(), False)
        await user.catch_up("orders-2")

        async def has_begun() -> bool:
            return run.under_way == {("orders", 0)}

        await eventually(has_begun, "there is room")
        await user.catch_up("orders-0")
        await running
    assert (run.ended, run.refused) == (1, {})


async def test_replication_factor_is_raised_and_lowered(user: Terminal) -> None:
    before = await replicas(user)
    raised, _ = await run_with_copies(user, "topics", "set-replication-factor", "orders", "3", "--yes")
    assert (raised.code, raised.out.splitlines()[-1]) == (0, "All partitions of orders have 3 replicas.")
    three = await replicas(user)
    assert [row[:2] for row in three] == before
    assert [len(set(row)) for row in three] == [3] * 6
    held = Counter(one for row in three for one in row)
    assert max(held.values()) - min(held.values()) <= 1

    lowered, _ = await run_with_copies(user, "topics", "set-replication-factor", "orders", "1", "--yes", "--json")
    report = json.loads(lowered.out)
    assert (lowered.code, report["is_done"], report["plan"]["copies"]) == (exit_codes.DONE, True, 0)
    assert await replicas(user) == [row[:1] for row in before]
    again = await user.run("topics", "set-replication-factor", "orders", "1")
    assert again == (exit_codes.DONE, "All partitions of orders have 1 replica.\n", "")


async def test_balance_evens_out_replicas_and_leaders_over_brokers_and_racks(user: Terminal) -> None:
    await user.run("topics", "create", "logs", "--replica-assignment", ",".join(["11:12"] * 6))
    ended, _ = await run_with_copies(user, "cluster", "balance", "--yes")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Replicas and leaders are as even as racks allow.")
    after = [*await replicas(user), *await replicas(user, "logs")]
    assert Counter(one for row in after for one in row) == dict.fromkeys(BROKERS, 6)
    assert Counter(row[0] for row in after) == dict.fromkeys(BROKERS, 3)
    assert all({BROKERS[one] for one in row} == {"a", "b"} for row in after)
    again = await user.run("cluster", "balance", "--dry-run")
    assert (again.code, again.out) == (exit_codes.DONE, "Replicas and leaders are as even as racks allow.\n")


async def test_broker_is_decommissioned_when_it_holds_nothing_and_was_stopped(user: Terminal) -> None:
    process = await start(user.stage.urls[1], "brokers", "decommission", "11", "--yes")
    assert process.stderr is not None

    async def is_empty() -> bool:
        for partition in await open_now(user):
            await user.catch_up(partition)
        return not any(11 in row for row in await replicas(user))

    await eventually(is_empty, "the broker holds nothing")
    told = b""
    while b"stop it now" not in told:
        line = await process.stderr.readline()
        assert line, told
        told = line
    assert 11 in user.stage.members[1].controller.stable.cluster.brokers
    fence = {"broker_id": 11, "broker_epoch": user.epochs[11], "current_metadata_offset": 2**60, "want_fence": True}
    assert (await user.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", fence))[1]["is_fenced"]
    ended = await end_of(process)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Broker 11 is no longer registered."), ended
    assert sorted(user.stage.members[1].controller.stable.cluster.brokers) == [12, 13, 14]


async def test_broker_that_was_unregistered_too_soon_is_named_and_drained(user: Terminal) -> None:
    forced = await user.run("brokers", "unregister", "11", "--yes", "--force")
    assert forced.code == exit_codes.DONE
    seen = json.loads((await user.run_as_it_is("status", "--json")).out)
    assert [(one["message"], one["nodes"]) for one in seen["reasons"] if one["code"] == "BROKERS_UNREGISTERED"] == [
        ("broker 11 is not registered and holds 3 replicas", [11])
    ]
    planned = await user.run_as_it_is("brokers", "drain", "11", "--dry-run")
    assert ["11", "unregistered", "(none)", "drained", "3", "0", "(-3)"] in planned.cells
    whole = json.loads((await user.run_as_it_is("cluster", "balance", "--dry-run", "--json")).out)["plan"]
    assert not any(11 in move["after"] for move in whole["moves"])
    assert {one["broker"]: one["replicas_after"] for one in whole["brokers"]}[11] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("brokers", "drain", "99"), exit_codes.REFUSED, "broker 99 is not registered and holds no replica"),
        (("brokers", "drain", "11", "--exclude", "x"), exit_codes.USAGE, "no broker id"),
        (("brokers", "drain", "11", "--exclude", "99"), exit_codes.REFUSED, "broker 99 is not registered"),
        (("brokers", "drain", "-1"), exit_codes.USAGE, "-1"),
        (("brokers", "drain", "11", "--at", "3"), exit_codes.USAGE, "say --dry-run"),
        (("brokers", "drain", "11", "--at-once", "0"), exit_codes.USAGE, "--at-once"),
        (("brokers", "decommission"), exit_codes.USAGE, "Missing argument"),
        (("topics", "set-replication-factor", "none", "2"), exit_codes.REFUSED, "there is no topic none"),
        (("topics", "set-replication-factor", "o*", "2"), exit_codes.USAGE, "no name of one topic"),
        (("topics", "set-replication-factor", "orders", "0"), exit_codes.USAGE, "greater than or equal to 1"),
        (("topics", "set-replication-factor", "orders", "65"), exit_codes.USAGE, "less than or equal to 64"),
        (("topics", "set-replication-factor", "orders", "5"), exit_codes.REFUSED,
         "(the first of them 5 for 4), and each needs a broker of its own: have fewer replicas"),
        (("topics", "set-replication-factor", "orders", "5"), exit_codes.REFUSED,
         "more brokers that take some; topics orders; 4 brokers take replicas"),
    ],
)  # fmt: skip
async def test_bad_command_ends_with_a_sentence_and_moves_nothing(
    user: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = await user.run(*arguments)
    assert (ended.code, ended.out, says in ended.said) == (code, "", True), ended
    assert "Traceback" not in ended.err
    assert await open_now(user) == []
