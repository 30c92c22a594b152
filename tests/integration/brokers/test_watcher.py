"""A spectator: what it sees of a cluster, that it knows when it sees nothing, and that it leaves nothing behind."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quorate import testing
from quorate.broker.metadata.loader import LoaderFault
from quorate.broker.publisher import ControllerEpoch
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import METADATA_TOPIC_ID
from quorate.metadata_log.records.records import NoOpRecord, RemoveTopicRecord, TopicRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE
from quorate.watch import WatchEnded, Watcher, WatchTimeout, watch
from tests.integration.embedded.changes import CHANGE
from tests.integration.feed_stage import FeedController, serving
from tests.integration.http_servers import closed_port
from tests.integration.loader_stage import FIRST, Recorder
from tests.unit.broker.images import batch, uuid
from tests.waiting import within

WAIT_MS = 20_000
BAD = batch(3, 1, RemoveTopicRecord(topic_id=METADATA_TOPIC_ID))


def names(image: MetadataImage) -> list[str]:
    return sorted(image.topics.by_name)


async def test_watcher_of_a_cluster_sees_its_changes_and_is_registered_nowhere() -> None:
    async with testing.cluster() as cluster, cluster.client() as client, watch(cluster.urls) as watcher:
        assert watcher.image is not EMPTY_IMAGE
        assert (watcher.controller.leader_id, watcher.cut_off_since, watcher.trouble) == (0, None, None)
        before = watcher.offset
        await client.incremental_alter_configs(CHANGE)
        image = await watcher.wait_for(lambda image: "4711" in image.configs.of(BROKER_RESOURCE, "").values(), WAIT_MS)

        assert (image, image.provenance.last_contained_offset) == (watcher.image, watcher.offset)
        assert watcher.offset > before
        described = await client.describe_cluster()
        assert (watcher.cluster_id, watcher.epoch) == (described.cluster_id, described.epoch)
        assert (await client.describe_brokers()).brokers == []
        assert (await client.feed_sessions(cluster.urls[0])).sessions == []


async def test_publishers_of_a_watcher_are_told_and_closed() -> None:
    recorder, late, ended = Recorder(), Recorder(), []
    recorder.close = lambda: ended.append("recorder")  # type: ignore[method-assign]
    late.close = lambda: ended.append("late")  # type: ignore[method-assign]
    controller = FeedController(1, FIRST)
    async with serving(controller):
        async with watch([controller.url], [recorder]) as watcher:
            assert names(recorder.image) == ["a", "b"]
            assert recorder.controllers == [ControllerEpoch(1, 1)]
            watcher.remove(recorder.name)
            watcher.install(late)
            controller.append(batch(3, 1, TopicRecord(name="c", topic_id=uuid(3))))
            await watcher.wait_for(lambda image: "c" in image.topics.by_name, WAIT_MS)
            assert (names(recorder.image), names(late.image)) == (["a", "b"], ["a", "b", "c"])
        assert ended == ["recorder", "late"]
        assert names(watcher.image) == ["a", "b", "c"], "the last state may be asked for afterwards"


async def test_watcher_that_no_controller_answers_says_since_when_and_that_it_is_back() -> None:
    recorder = Recorder()
    controllers = [FeedController(number, FIRST) for number in (1, 2)]
    began = datetime.now(UTC)
    async with serving(*controllers), watch([c.url for c in controllers], [recorder], silence_max_ms=0) as watcher:
        with pytest.raises(WatchTimeout, match=r"^not so within 20 ms: the image is at offset 2$"):
            await watcher.wait_until_cut_off(timeout_ms=20)
        for controller in controllers:
            await controller.stop()
        stopped = datetime.now(UTC)
        with within(10, "it is cut off as soon as nobody answers"):
            await watcher.wait_until_cut_off(WAIT_MS)

        since = watcher.cut_off_since
        assert since is not None
        assert began < since < stopped, "since it heard of them last"
        assert (watcher.controller.leader_id, recorder.controllers[-1].leader_id) == (None, None)
        assert names(watcher.image) == ["a", "b"]
        with pytest.raises(WatchTimeout, match=r"at offset 2; .*127\.0\.0\.1"):
            await watcher.wait_for(lambda image: "c" in image.topics.by_name, timeout_ms=20)

        for controller in controllers:
            controller.append(batch(3, 2, TopicRecord(name="c", topic_id=uuid(3))))
        await controllers[1].start()
        await watcher.wait_until_back(WAIT_MS)
        assert watcher.cut_off_since is None
        await watcher.wait_for(lambda image: "c" in image.topics.by_name, WAIT_MS)
        assert recorder.controllers[-1] == watcher.controller == ControllerEpoch(2, 2)


async def test_watcher_without_a_controller_gives_up_in_time_or_begins_without_an_image() -> None:
    tasks = asyncio.all_tasks()
    async with closed_port() as url:
        with pytest.raises(WatchTimeout, match=r"not so within 50 ms: there is no image yet: .* cannot be reached"):
            async with watch([url], catch_up_ms=50):
                pytest.fail("it began")
    assert asyncio.all_tasks() == tasks

    controller = FeedController(1, FIRST)
    async with serving(controller):
        url = controller.url
        await controller.stop()
        async with watch([url], catch_up_ms=None) as watcher:
            assert (watcher.image, watcher.offset, watcher.cluster_id) == (EMPTY_IMAGE, -1, "")
            await controller.start()
            assert names(await watcher.wait_for(lambda image: True, WAIT_MS)) == ["a", "b"]
    assert asyncio.all_tasks() == tasks


async def test_log_that_cannot_be_replayed_ends_the_block_and_everybody_who_waits() -> None:
    """Going on would show a state that is not the cluster's."""
    controller = FeedController(1, FIRST)
    waiting: list[asyncio.Task[MetadataImage]] = []
    async with serving(controller):
        with pytest.raises(WatchEnded, match="the batch at offset 3 cannot be replayed") as caught:  # noqa: PT012 - at its end
            async with watch([controller.url]) as watcher:
                waiting.append(asyncio.create_task(watcher.wait_for(lambda image: False)))
                controller.append(BAD)
                await asyncio.Event().wait()
        assert isinstance(caught.value.__cause__, LoaderFault)
        assert isinstance(caught.value, QuorateError)
        with pytest.raises(WatchEnded, match="the batch at offset 3"):
            await waiting[0]
        with pytest.raises(WatchEnded, match="the batch at offset 3"):
            async with watch([controller.url]):
                pytest.fail("it began")


async def test_end_of_the_block_lets_everybody_go_who_waits() -> None:
    controller = FeedController(1, FIRST)
    async with serving(controller):
        async with watch([controller.url]) as watcher:
            task = asyncio.create_task(watcher.wait_for(lambda image: False))
            await asyncio.sleep(0)
        with pytest.raises(WatchEnded, match="this watcher's block is over"):
            await task
        with pytest.raises(WatchEnded):
            await watcher.wait_for(lambda image: True)


async def test_error_of_a_condition_is_its_own_and_ends_nothing_else() -> None:
    controller = FeedController(1, FIRST)
    async with serving(controller), watch([controller.url]) as watcher:
        with pytest.raises(ZeroDivisionError):
            await watcher.wait_for(lambda image: 1 // 0 > 0, WAIT_MS)
        controller.append(batch(3, 1, NoOpRecord()))
        assert (await watcher.wait_for(lambda image: image.provenance.end_offset == 4, WAIT_MS)) is watcher.image


async def test_watchers_beside_each_other_follow_their_own_clusters() -> None:
    async def topic_added(controller: FeedController, watcher: Watcher, name: str) -> None:
        controller.append(batch(3, 1, TopicRecord(name=name, topic_id=uuid(3))))
        await watcher.wait_for(lambda image: name in image.topics.by_name, WAIT_MS)

    one, two = FeedController(1, FIRST), FeedController(1, FIRST)
    two.cluster_id = "another"
    async with serving(one, two), watch([one.url]) as first, watch([two.url]) as second:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(topic_added(one, first, "c"))
            tasks.create_task(topic_added(two, second, "d"))
        assert (names(first.image), names(second.image)) == (["a", "b", "c"], ["a", "b", "d"])
        assert (first.cluster_id, second.cluster_id) == (one.cluster_id, "another")


_PROGRAM = """
import asyncio, sys, signal
from quorate.publishers import MetadataPublisher
from quorate.snapshots.image.image_parts import BROKER_RESOURCE
from quorate.watch import WatchTimeout, watch

class Broken(MetadataPublisher):
    def on_metadata_update(self, delta, image, manifest):
        raise RuntimeError("as it was told")

async def main():
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    async with watch([sys.argv[1]], [Broken()]) as watcher:
        assert {number: signal.getsignal(number) for number in handlers} == handlers
    try:
        async with watch([sys.argv[2]], catch_up_ms=50):
            pass
    except WatchTimeout:
        pass

asyncio.run(main())
"""


async def test_watcher_prints_nothing_and_takes_no_signal(tmp_path: Path) -> None:
    """Errors of a program's publishers go to the standard library's log, with their traceback."""
    controller = FeedController(1, FIRST)
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    async with serving(controller), closed_port() as nobody:
        command = [sys.executable, "-P", str(program), controller.url, nobody]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
    assert (done.returncode, done.stdout) == (0, "")
    assert "publisher.failed publisher='Broken' method='on_metadata_update'" in done.stderr
    assert "RuntimeError: as it was told" in done.stderr
    assert "loader.controller_unavailable" in done.stderr
    assert "loader.caught_up" not in done.stderr


async def test_watcher_whose_task_is_cancelled_by_somebody_else_ends_the_block() -> None:
    async def program(url: str) -> None:
        async with asyncio.timeout(WAIT_MS / 1000), watch([url]):
            (own,) = [task for task in asyncio.all_tasks() if task.get_name() == "metadata-watcher"]
            own.cancel()
            await asyncio.Event().wait()

    controller = FeedController(1, FIRST)
    async with serving(controller):
        with pytest.raises(WatchEnded, match="cancelled the watcher's task"):
            await program(controller.url)
