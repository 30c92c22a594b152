"""Old states: the parameter `at` of the routes that read, and `--at` and `--from` of commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.feed.feed import FeedChunk
from quorate.controller.reads.past import IMAGES_MAX, PastImages
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cli.logs import live_image as live_image_of_a_log
from quorate.scripts.cli.logs.live_image import live_image
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.checkpoints.moments import Moment, parse_moment
from tests.guards.patching import patching
from tests.integration.commands import Terminal, alone, terminal
from tests.integration.http_stage import Bad, Stage, stage

BAD = [
    Bad("moment that is none", "GET", "/v1/topics?at=yesterday", None, 400, "INVALID_REQUEST", "at"),
    Bad("day that is none", "GET", "/v1/topics?at=2026-02-30", None, 400, "INVALID_REQUEST", "is no moment"),
    Bad("fresh and old", "GET", "/v1/topics?at=3&consistency=linearizable", None, 400, "INVALID_REQUEST", "exclude"),
    Bad("offset to come", "GET", "/v1/brokers?at=999999", None, 409, "OFFSET_OUT_OF_RANGE", "before 999999"),
    Bad("epoch to come", "GET", "/v1/cluster?at=epoch:9", None, 409, "OFFSET_OUT_OF_RANGE", "before epoch 9"),
    Bad("time before the log", "GET", "/v1/status?at=1970-01-01", None, 409, "OFFSET_OUT_OF_RANGE", "log begins at"),
    Bad(
        "time to come",
        "GET",
        "/v1/topics?at=2999-01-01",
        None,
        409,
        "OFFSET_OUT_OF_RANGE",
        "+00:00, before 2999-01-01T00:00:00.000+00:00, which is yet to come",
    ),
    Bad(
        "epoch before it", "GET", "/v1/topics?at=epoch:0", None, 409, "OFFSET_OUT_OF_RANGE", "begins in epoch 1, after"
    ),
    Bad("readers of old", "GET", "/v1/feed-sessions?at=3", None, 400, "INVALID_REQUEST", "at"),
    Bad(
        "past, streamed",
        "GET",
        "/v1/metadata/batches?offset=0&past=1&stream=1",
        None,
        400,
        "INVALID_REQUEST",
        "past and",
    ),
    Bad("status to come", "GET", "/v1/status?at=999999", None, 409, "OFFSET_OUT_OF_RANGE", "before 999999"),
]


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    async with terminal({11: "a", 12: None}) as typed:
        yield typed


async def create(s: Stage, name: str) -> int:
    """A topic; the offset at which it is there."""
    status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
    assert status == 200, reply
    return s.quorum.committed


async def names(s: Stage, node_id: int, at: str) -> list[str]:
    status, reply, headers = await s.ask(node_id, "GET", f"/v1/topics?at={at}")
    assert (status, headers["X-Quorate-Node"]) == (200, str(node_id)), reply
    return [topic["name"] for topic in reply["topics"]]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
async def test_moment_out_of_reach_is_refused_with_how_far_it_goes(bad: Bad) -> None:
    async with stage() as s:
        status, reply, _ = await s.ask(2, bad.method, bad.path)
        assert (status, reply["error"]) == (bad.status, bad.error)
        assert bad.says in reply["message"]


async def test_every_controller_shows_its_state_at_every_moment() -> None:
    async with stage() as s:
        empty = s.quorum.committed
        await s.register(1, 11)
        one = await create(s, "one")
        await s.elect(1)
        two = await create(s, "two")
        for node_id in s.members:
            assert await names(s, node_id, str(empty)) == []
            assert await names(s, node_id, str(one)) == ["one"]
            assert await names(s, node_id, str(two - 2)) == ["one"]
            assert await names(s, node_id, str(two)) == ["one", "two"]
            assert await names(s, node_id, "epoch:1") == ["one"]
            assert await names(s, node_id, "epoch:2") == ["one", "two"]
            assert await names(s, node_id, str(datetime.now(UTC)).replace("+00:00", "Z")) == ["one", "two"]
        brokers = (await s.ask(3, "GET", f"/v1/brokers?at={empty}"))[1]["brokers"]
        cluster = (await s.ask(3, "GET", f"/v1/cluster?at={one}"))[1]
        assert brokers == []
        assert (cluster["state_offset"], cluster["topics"], cluster["active_id"], cluster["epoch"]) == (one, 1, None, 1)
        assert (await s.ask(1, "GET", f"/v1/topics/two?at={one}"))[0] == 404


async def test_old_state_is_built_once_and_from_the_nearest_one() -> None:
    """Pages of one state, and a handful of others in between."""
    async with stage(1) as s:
        await s.register(1, 11)
        offsets = [await create(s, f"t{number}") for number in range(IMAGES_MAX + 1)]
        past = s.members[1].node.past
        assert isinstance(past, PastImages)
        for _ in range(3):
            assert await names(s, 1, str(offsets[0])) == ["t0"]
        assert past.built == 1
        for offset in offsets[1:]:
            await names(s, 1, str(offset))
        assert past.built == 1 + IMAGES_MAX
        await names(s, 1, str(offsets[-1]))
        assert past.built == 1 + IMAGES_MAX
        await names(s, 1, str(offsets[0]))  # the oldest one had to go
        assert past.built == 2 + IMAGES_MAX


async def test_state_at_a_time_of_a_log_whose_times_fall_is_that_after_the_last_batch_not_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One controller's clock was ahead, as in a log of Kafka's: what its successor wrote is seen all the same."""
    async with stage(1) as s:
        await s.register(1, 11)
        clock = s.members[1].controller.scheduler
        usual = clock.wall_ms()
        with patching() as patch:
            patch.setattr(clock, "wall_ms", lambda: usual + 3_600_000)
            await create(s, "ahead")
            head = s.members[1].controller._head
            assert head is not None
            head._timestamp = usual
            patch.setattr(clock, "wall_ms", lambda: usual + 10)
            await create(s, "since")
        past = s.members[1].node.past
        assert isinstance(past, PastImages)
        # Of none of these times it may be said that they are yet to come.
        later = usual + 3_600_000
        past._wall_ms = lambda: later
        monkeypatch.setattr(live_image_of_a_log, "now_ms", lambda: later)
        assert [len((await past.at(Moment(time_ms=usual + ahead))).topics) for ahead in (9, 10, 3_599_999)] == [0, 2, 2]
        assert await past.at(Moment(time_ms=usual + 9)) is await past.at(Moment(time_ms=usual + 9))
        # The same made from the controller's log by a command.
        moments = [Moment(time_ms=round(usual + ahead)) for ahead in (9, 10, 3_599_999)]
        images = [await asyncio.to_thread(live_image, s.urls[0], moment, None) for moment in moments]
        assert [len(image.topics) for image in images] == [0, 2, 2]


async def test_state_before_the_log_comes_from_a_checkpoint_or_not_at_all() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        member = s.members[1]
        await create(s, "one")
        before = s.quorum.committed
        status, taken, _ = await s.ask(1, "POST", "/v1/checkpoints")
        assert status == 200, taken
        covered = taken["checkpoint"]["end_offset"]
        await create(s, "two")
        past = member.node.past
        assert isinstance(past, PastImages)
        past._log = LaterLog(past._log, covered)
        assert covered == before
        assert await names(s, 1, str(covered)) == ["one"]
        status, reply, _ = await s.ask(1, "GET", f"/v1/topics?at={covered - 1}")
        assert (status, reply["error"]) == (409, "OFFSET_OUT_OF_RANGE")
        assert f"its log begins at offset {covered}, and its earliest checkpoint is the state at" in reply["message"]


async def test_checkpoint_damaged_since_the_start_is_passed_over() -> None:
    """The next older one and the log are used; without one the refusal names it."""
    async with stage(1) as s:
        await s.register(1, 11)
        member = s.members[1]
        past = member.node.past
        assert isinstance(past, PastImages)
        covered = []
        for name in ("one", "two"):
            await create(s, name)
            covered.append((await s.ask(1, "POST", "/v1/checkpoints"))[1]["checkpoint"]["end_offset"])
        await create(s, "three")
        past._held = lambda: (member.controller.stable,)
        past._checkpoints = damaged = DamagedCheckpoints(past._checkpoints, {covered[1]})
        assert await names(s, 1, str(covered[1])) == ["one", "two"]
        assert damaged.refused == [covered[1]]
        past._log = LaterLog(past._log, covered[1])
        damaged.ends.add(covered[0])
        past._kept.clear()
        status, reply, _ = await s.ask(1, "GET", f"/v1/topics?at={covered[1]}")
        assert (status, reply["error"]) == (409, "OFFSET_OUT_OF_RANGE")
        assert f"{covered[1]:020d}" in reply["message"]
        assert "not a usable checkpoint: its bytes are not those that were there" in reply["message"]


class DamagedCheckpoints:
    """Some of them have a bit flipped."""

    def __init__(self, checkpoints: Any, ends: set[int]) -> None:
        self._checkpoints = checkpoints
        self.ends = ends
        self.refused: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checkpoints, name)

    def read_chunk(self, checkpoint: CheckpointId, position: int, size_max: int) -> CheckpointChunk:
        chunk: CheckpointChunk = self._checkpoints.read_chunk(checkpoint, position, size_max)
        if checkpoint.end_offset not in self.ends:
            return chunk
        self.refused.append(checkpoint.end_offset)
        return replace(chunk, data=bytes([chunk.data[0] ^ 1]) + chunk.data[1:])


class LaterLog:
    """A log whose beginning was deleted."""

    def __init__(self, log: Any, start: int) -> None:
        self._log = log
        self.log_start_offset = start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        assert offset >= self.log_start_offset
        chunk: FeedChunk = self._log.read_from(offset, max_bytes)
        return chunk


async def test_client_reads_at_its_moment(user: Terminal) -> None:
    before = user.stage.quorum.committed
    await user.run("topics", "create", "orders", "--replica-assignment", "11:12")
    async with ControllerClient(user.stage.urls, at=str(before)) as client:
        assert (await client.list_topics(consistency="linearizable")).topics == []
        with pytest.raises(ApiError):
            await client.describe_topic("orders", is_linearizable=True)


async def test_commands_show_the_state_at_a_moment_of_a_cluster_and_of_files(user: Terminal, tmp_path: Path) -> None:
    """The same commands, on a running controller and on a copy of its log."""
    before = user.stage.quorum.committed
    await user.run("topics", "create", "orders", "--replica-assignment", "11:12,11:12")
    await user.run("configs", "alter", "topic/orders", "--set", "retention.ms=5")
    end = user.stage.quorum.committed
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"".join(user.stage.quorum.batches))
    assert parse_header(user.stage.quorum.batches[0]).base_offset == 0
    for arguments in (
        ("topics", "list"),
        ("topics", "describe"),
        ("partitions", "list"),
        ("partitions", "describe", "orders-0"),
        ("brokers", "list"),
        ("brokers", "describe", "11"),
        ("configs", "describe", "topic/orders"),
        ("features", "describe"),
        ("quotas", "list"),
        ("users", "list"),
        ("acls", "list"),
        ("reassign", "list"),
        ("tokens", "list"),
    ):
        for moment in (before, end - 1, end):
            shown = await user.run(*arguments, "--at", str(moment), "--json")
            read = await alone(*arguments, "--from", str(log), "--at", str(moment), "--json")
            assert (read.code, read.err) == (shown.code, shown.err), (arguments, moment)
            if read.code:
                assert (read.out, shown.out) == ("", "")
                continue
            of_files, of_cluster = json.loads(read.out), json.loads(shown.out)
            assert (of_files["as_of"].pop("time"), bool(of_cluster["as_of"].pop("time"))) == (None, True)
            assert list(of_files.items()) == list(of_cluster.items()), (arguments, moment)
    assert "orders" not in (await user.run("topics", "list", "--at", str(before))).out
    cluster = json.loads((await alone("cluster", "describe", "--from", str(log), "--json")).out)
    assert (cluster["state_offset"], cluster["topics"], cluster["brokers"]) == (end, 1, [11, 12])


async def test_commands_refuse_moments_and_files_that_are_not_there(tmp_path: Path) -> None:
    wrong = await alone("topics", "list", "--from", str(tmp_path), "--at", "yesterday")
    assert (wrong.code, "is no moment" in wrong.said) == (exit_codes.USAGE, True)
    log = "tests/data/kafka/dynamic-small/m1/log"
    for question in (("explain",), ("status",), ("what-if", "stop", "broker", "11"), ("topics", "list")):
        to_come = await alone(*question, "--from", log, "--at", "2999-01-01")
        assert (to_come.code, to_come.out) == (exit_codes.REFUSED, "")
        assert "the log ends at offset" in to_come.err
        assert "before 2999-01-01T00:00:00.000+00:00, which is yet to come" in to_come.err
    empty = await alone("topics", "list", "--from", str(tmp_path))
    assert (empty.code, "holds no segment" in empty.err) == (exit_codes.REFUSED, True)


@pytest.mark.parametrize("text", ["7", "epoch:3", "2026-01-31T12:00:00Z"])
def test_moment_tells_itself_as_it_was_written(text: str) -> None:
    moment = parse_moment(text)
    assert str(moment).removeprefix("offset ").replace("the end of epoch ", "epoch:")[:7] == text[:7]
    assert isinstance(moment, Moment)
