"""What happened before the newest checkpoint: running controllers tell it whose logs were cut, each somewhere else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from quorate.controller.client.client import ControllerClient
from quorate.controller.feed.feed import FeedChunk, FeedSource
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.disk import drain
from quorate.metadata_log.errors import StorageError
from quorate.scripts.cluster.local import LocalOptions
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Ended, alone
from tests.integration.http_stage import Stage, stage
from tests.integration.running_cluster import running_cluster
from tests.log_support import flush
from tests.waiting import eventually

NAMES = ("one", "two", "three")


def offsets(ended: Ended) -> list[int]:
    assert ended.code == exit_codes.DONE, ended
    return [json.loads(line)["base_offset"] for line in ended.out.splitlines()]


def topics(ended: Ended) -> list[str]:
    assert ended.code == exit_codes.DONE, ended
    return [cells[0] for cells in ended.cells[1:]]


async def checkpoints_behind_topics(s: Stage) -> list[int]:
    """One topic after another, each with a checkpoint of controller 1 behind it; their ends."""
    await s.register(1, 11)
    ends = []
    for name in NAMES:
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
        assert status == 200, reply
        ends.append((await s.ask(1, "POST", "/v1/checkpoints"))[1]["checkpoint"]["end_offset"])
    await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "last"}]})
    return ends


def cut(s: Stage, node_id: int, start: int) -> None:
    """As retention does: the log begins at a checkpoint, and those before it are gone."""
    member = s.members[node_id]
    gone = [info.id for info in member.checkpoints.infos if info.id.end_offset < start]
    drain(member.checkpoints.delete_job(gone))
    member.log.note_commit(s.quorum.committed)
    member.log.delete_prefix(start)
    assert member.log.start_offset == start


async def test_log_that_was_cut_is_told_from_its_oldest_checkpoint() -> None:
    async with stage(1) as s:
        first, second, _ = await checkpoints_behind_topics(s)
        url = s.urls[0]
        whole = offsets(await alone("history", "--json", "--controllers", url))
        cut(s, 1, first)
        for place in ("--controllers", "--from"):
            told = await alone("history", "--json", place, url)
            assert offsets(told) == [offset for offset in whole if offset >= first]
            assert told.err.startswith(f"quorate: history begins at offset {first}, time 20")
            assert "earlier records were cut by retention" in told.err
        assert topics(await alone("topics", "list", "--controllers", url, "--at", str(first))) == ["one"]
        at_second = await alone("image", "diff", f"{url}@{first}", f"{url}@{second}")
        assert (at_second.code, "+ two-0" in at_second.out, "one-0" in at_second.out) == (
            exit_codes.REFUSED,
            True,
            False,
        )


async def test_running_log_is_read_back_from_its_end_as_far_as_it_takes() -> None:
    """Stretch by stretch, from one checkpoint to the one before; further back nobody is asked."""
    async with stage(3) as s:
        _, second, third = await checkpoints_behind_topics(s)
        url = s.urls[2]
        whole = offsets(await alone("history", "--json", "--controllers", url))
        assert (min(whole) < second < third < max(whole), len(whole)) == (True, len(set(whole)))
        for limit in (1, len(whole) // 2, len(whole)):
            told = await alone("history", "--json", "--limit", str(limit), "--controllers", url)
            assert offsets(told) == whole[-limit:]
        feed = s.members[1].node.feed
        feed._history = BeheadedLog(feed._history, third)
        told = await alone("history", "--json", "--since", str(third), "--from", s.urls[0])
        assert (offsets(told), told.err) == ([offset for offset in whole if offset >= third], "")
        assert (await alone("history", "--from", s.urls[0])).code != exit_codes.DONE


async def test_nothing_that_is_told_of_what_was_cut_is_no_success() -> None:
    async with stage(1) as s:
        first, *_ = await checkpoints_behind_topics(s)
        cut(s, 1, first)
        told = await alone("history", "topic", "one", "--controllers", s.urls[0])
        assert (told.code, told.out) == (exit_codes.REFUSED, "")
        assert told.err.endswith("quorate: nothing is known of topic one since then\n")
        never = await alone("topics", "list", "--controllers", s.urls[0], "--at", str(first - 1))
        assert (never.code, f"its log begins at offset {first}" in never.err) == (exit_codes.REFUSED, True)


async def test_whichever_controller_reaches_back_furthest_is_asked() -> None:
    """One is named whose log was cut; the others are found by it, and one of them has all."""
    async with stage(3) as s:
        first, _, third = await checkpoints_behind_topics(s)
        whole = offsets(await alone("history", "--json", "--controllers", s.urls[2]))
        cut(s, 1, third)
        named = ("--controllers", s.urls[0])
        told = await alone("history", "--json", *named)
        assert (offsets(told), told.err) == (whole, "")
        assert topics(await alone("topics", "list", *named, "--at", str(first))) == ["one"]
        for node_id in (2, 3):
            await s.members[node_id].stop_serving()
        left = await alone("history", "--json", *named)
        assert offsets(left) == [offset for offset in whole if offset >= third]
        assert left.err.count("a log that may begin earlier was not read: http://") == 2
        refused = await alone("topics", "list", *named, "--at", str(first))
        assert (refused.code, f"its log begins at offset {third}" in refused.err) == (exit_codes.REFUSED, True)


async def test_log_that_ends_before_the_others_is_gone_on_with() -> None:
    """Controller 2 reaches back furthest, and has not heard of the newest."""
    async with stage(3) as s:
        first, second, _ = await checkpoints_behind_topics(s)
        whole = offsets(await alone("history", "--json", "--controllers", s.urls[2]))
        cut(s, 1, first)
        cut(s, 3, second)
        feed = s.members[2].node.feed
        feed._source = EarlierLog(feed._source, second)
        told = await alone("history", "--json", "--controllers", s.urls[0])
        assert (offsets(told), told.err) == (whole, "")


class EarlierLog:
    """A member's log that ends earlier."""

    def __init__(self, source: FeedSource, end: int) -> None:
        self._source: Any = source
        self.high_watermark = end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        known, self._source._high_watermark = self._source._high_watermark, lambda: self.high_watermark
        try:
            chunk: FeedChunk = self._source.read_from(offset, max_bytes)
            return chunk
        finally:
            self._source._high_watermark = known


async def test_log_that_was_cut_and_is_in_a_file_all_the_same_is_told_from_its_beginning() -> None:
    async with stage(1) as s:
        first, second, third = await checkpoints_behind_topics(s)
        url = s.urls[0]
        whole = offsets(await alone("history", "--json", "--controllers", url))
        flush(s.members[1].log)
        cut(s, 1, third)
        for place in ("--controllers", "--from"):
            told = await alone("history", "--json", place, url)
            assert (offsets(told), told.err) == (whole, "")
        for at, there in ((0, []), (first, ["one"]), (second, ["one", "two"])):
            assert topics(await alone("topics", "list", "--controllers", url, "--at", str(at))) == there
        at_second = await alone("image", "diff", f"{url}@{first}", f"{url}@{second}")
        assert ("+ two-0" in at_second.out, "one-0" in at_second.out) == (True, False)


async def test_running_cluster_tells_all_of_it_behind_checkpoints_that_retention_has_cut_it_by(tmp_path: Path) -> None:
    """Retention removes each checkpoint once there is a newer one; the only segment has all of it."""
    brief = LocalOptions(controller={"LOG__RETENTION_MS": "0"})
    async with running_cluster(tmp_path / "var", 1, 1, brief, is_secured=False) as cluster:
        (url,) = cluster.plan.controller_urls
        moments = []
        async with ControllerClient([url]) as client:
            for name in NAMES:
                topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                await client.create_topics(CreateTopicsRequest(topics=[topic]))
                taken = await client.checkpoints.take(url)
                moments.append(taken.checkpoint.end_offset)
            assert (await client.describe_quorum()).log_start_offset == moments[-1]
        logged = Path(cluster.directory / "logs" / "controller-1.log")
        assert cluster.plan.controllers[0].id == 1

        async def is_logged() -> bool:
            lines = map(json.loads, (await asyncio.to_thread(logged.read_text)).splitlines())
            created = [line for line in lines if line["event"] == "topics.created"]
            return sorted(name for line in created for name in line["first"]) == sorted(NAMES)

        await eventually(is_logged, "the controller's log names the topics")
        log = controller_directory(cluster.directory, cluster.plan.controllers[0]) / "__cluster_metadata-0"
        ends = sorted(int(file.name[:20]) for file in log.glob("*.checkpoint"))
        assert ends == [moments[-1]]
        told = await alone("history", "--json", "--limit", "1000", "--controllers", url)
        assert (min(offsets(told)) < moments[0], told.err) == (True, "")
        created = [json.loads(line) for line in told.out.splitlines() if '"create_topics"' in line]
        assert [step["base_offset"] < end for step, end in zip(created, moments, strict=False)] == [True] * 3
        for at, there in ((moments[0] - 1, ["one"]), (moments[1], ["one", "two"])):
            assert sorted(topics(await alone("topics", "list", "--controllers", url, "--at", str(at)))) == there
        led = await alone("quorum", "describe", "--controllers", url, "--at", str(moments[0]), "--json")
        assert json.loads(led.out)["active_id"] == 1
        of_files = offsets(await alone("history", "--json", "--limit", "1000", "--from", str(log.parent)))
        assert of_files[: len(offsets(told))] == offsets(told)


class BeheadedLog:
    """A member's log of which nothing before an offset can be read, and nobody knows."""

    def __init__(self, source: FeedSource, begin: int) -> None:
        self._source: Any = source
        self._begin = begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        if 0 < offset < self._begin or (offset == 0 and max_bytes > 1):
            raise StorageError(f"offset {offset} is damaged")
        chunk: FeedChunk = self._source.read_from(offset, max_bytes)
        return chunk
