"""Brokers against real controllers over real sockets: the way through a life, leading, leaving, being replaced."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quorate.broker.host import NotCaughtUp
from quorate.broker.lifecycle.identity import NotInTheImage
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.publisher import ControllerEpoch
from quorate.broker.settings import LifecycleSettings, RehearsalSettings
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatableTopic,
    CreateTopicsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaAssignment,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.digest_form import DIGEST_FORM
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.table.partition import Partition
from tests.integration.broker_stage import Played, playing, stage_with_short_sessions
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually


async def create(client: ControllerClient, name: str, *assignments: list[int]) -> None:
    """A topic with these replicas for each partition."""
    topic = CreatableTopic(
        name=name,
        assignments=[ReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in enumerate(assignments)],
    )
    (result,) = (await client.create_topics(CreateTopicsRequest(topics=[topic]))).topics
    assert result.error_code is ErrorCode.NONE, result


async def reassign(client: ControllerClient, name: str, partition: int, replicas: list[int] | None) -> None:
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=name, partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)]
            )
        ]
    )
    ((result,),) = ((t.partitions) for t in (await client.alter_partition_reassignments(request)).responses)
    assert result.error_code is ErrorCode.NONE, result


def partition(built: Stage, topic: str, number: int) -> Partition:
    """A partition as the controllers have it."""
    image = built.members[1].controller.stable
    row = image.partitions.row(image.topics.by_name[topic].id, number)
    assert row is not None
    return image.partitions.partition(row)


async def sees(built: Stage, topic: str, number: int, what: str, **wanted: object) -> Partition:
    """The partition once its fields are as wanted."""

    async def look() -> Partition | None:
        state = partition(built, topic, number)
        return state if all(getattr(state, name) == value for name, value in wanted.items()) else None

    found = await eventually(look, f"{what}: {topic}-{number} has {wanted}")
    assert found is not None
    return found


async def test_host_several_brokers_register_and_become_ready() -> None:
    async with stage(3) as built, playing("1-3", built.urls, racks=["a", "b", "a"]) as played:
        await played.ready()

        brokers = built.members[1].controller.stable.cluster.brokers
        assert sorted(brokers) == [1, 2, 3]
        assert [brokers[id_].rack for id_ in (1, 2, 3)] == ["a", "b", "a"]
        assert brokers[1].listeners[0].port == played.endpoint.port
        assert len({brokers[id_].directories for id_ in (1, 2, 3)}) == 3
        status, reply = await played.get("/readyz")
        assert (status, [broker["state"] for broker in reply["brokers"]]) == (200, ["running"] * 3)
        status, reply = await played.get("/v1/process")
        assert status == 200
        assert reply["replica_manager"]["moves_data"] is False
        assert "no data are moved" in reply["replica_manager"]["notice"]
        assert reply["following"]["is_caught_up"]
        assert [publisher["errors"] for publisher in reply["publishers"]] == [0] * 5
        assert (await played.get("/livez")) == (200, {"ok": True})


async def test_host_reassignment_completes_through_the_rehearsal_leader() -> None:
    async with stage(1) as built, playing("1-4", built.urls) as played, ControllerClient(built.urls) as client:
        await played.ready()
        await create(client, "t", [1, 2, 3], [2, 3, 1])
        await reassign(client, "t", 0, [4, 2])

        state = await sees(built, "t", 0, "the reassignment is complete", replicas=(4, 2), adding_replicas=())
        assert sorted(state.isr) == [2, 4]
        assert state.leader == 4
        _, reply = await played.get("/v1/topics/t")
        assert reply["topic"]["partitions"][0]["replica_nodes"] == [4, 2]
        _, reply = await played.get("/v1/process")
        assert sum(reply["replica_manager"]["answers"].values()) >= 1
        assert built.members[1].faults.seen == []


async def test_host_modelled_copy_time_passes_before_a_replica_joins() -> None:
    """1,000 bytes at 2,000 a second."""
    copying = RehearsalSettings(partition_bytes=1_000, copy_bytes_per_s=2_000)
    async with (
        stage(1) as built,
        playing("1-2", built.urls, rehearsal=copying) as played,
        ControllerClient(built.urls) as client,
    ):
        await played.ready()
        await create(client, "t", [1])
        begun = time.monotonic()
        await reassign(client, "t", 0, [1, 2])
        await sees(built, "t", 0, "the new replica follows", adding_replicas=(2,))
        await sees(built, "t", 0, "it is caught up", adding_replicas=(), replicas=(1, 2))

        assert time.monotonic() - begun >= 0.5


async def test_host_leaving_in_order_hands_over_and_comes_back_into_the_isr() -> None:
    async with (
        stage_with_short_sessions() as built,
        playing([1, 2], built.urls) as staying,
        ControllerClient(built.urls) as client,
    ):
        async with playing([3], built.urls) as leaving:
            await staying.ready()
            await leaving.ready()
            await create(client, "t", [3, 1, 2])
            await sees(built, "t", 0, "it is led", leader=3)
            await leaving.leave()

            assert leaving.host.readiness()[0].is_clean_stop
        state = partition(built, "t", 0)
        assert (state.leader, 3 in state.isr) == (1, False)
        assert built.members[1].controller.stable.cluster.brokers[3].is_fenced
        async with playing([3], built.urls) as back:
            await back.ready()
            await sees(built, "t", 0, "it is in sync again", isr=(1, 2, 3))

            before = built.members[1].controller.stable.cluster.brokers[3]
            assert before.directories == leaving.host.sessions[3].identity.directories
            assert (
                back.host.sessions[3].identity.previous_broker_epoch == leaving.host.sessions[3].lifecycle.broker_epoch
            )


async def test_host_killed_broker_is_fenced_and_comes_back_into_the_isr() -> None:
    async with (
        stage_with_short_sessions() as built,
        playing([1, 2], built.urls) as staying,
        ControllerClient(built.urls) as client,
    ):
        async with playing([3], built.urls) as killed:
            await staying.ready()
            await killed.ready()
            await create(client, "t", [3, 1, 2])
        state = await sees(built, "t", 0, "another broker leads", leader=1)
        assert 3 not in state.isr
        async with playing([3], built.urls) as back:
            await back.ready()
            await sees(built, "t", 0, "it is in sync again", isr=(1, 2, 3))


async def test_host_broker_whose_id_another_process_takes_fails_alone() -> None:
    """It was cut off for longer than its session, and comes back to a log that has a successor."""
    silent = LifecycleSettings(heartbeat_interval_ms=600_000, request_timeout_ms=3_000, session_timeout_ms=3_600_000)
    async with stage_with_short_sessions() as built, playing([1, 2], built.urls, lifecycle=silent) as cut_off:
        await cut_off.ready()
        async with playing([2], built.urls) as successor:
            await successor.ready()

            async def failed() -> bool:
                return cut_off.host.sessions[2].lifecycle.state is LifecycleState.FAILED

            await eventually(failed, "the predecessor has seen its successor")
            status, reply = await cut_off.get("/readyz")
            assert status == 503
            assert "another process has registered as broker 2" in reply["brokers"][1]["trouble"]
            assert not cut_off.host.sessions[1].lifecycle.is_over
            assert not cut_off.task.done()


async def test_host_all_brokers_leaving_at_once_end() -> None:
    """Nobody is left to take over: partitions are without a leader, and nobody waits for anybody."""
    async with stage(1) as built, playing("1-3", built.urls) as played, ControllerClient(built.urls) as client:
        await played.ready()
        await create(client, "t", [1, 2], [2, 3], [3, 1])
        await played.leave()

        assert [broker.state for broker in played.host.readiness()] == [LifecycleState.STOPPED] * 3


async def test_host_broker_unregistered_by_an_operator_registers_again() -> None:
    async with stage(1) as built, playing([1, 2], built.urls) as played, ControllerClient(built.urls) as client:
        await played.ready()
        epoch = played.host.sessions[2].lifecycle.broker_epoch
        await client.unregister_broker(2)

        async def again() -> bool:
            known = built.members[1].controller.stable.cluster.brokers.get(2)
            return known is not None and known.epoch > epoch and not known.is_fenced

        await eventually(again, "broker 2 has registered and been unfenced again")
        await played.ready()
        assert played.host.sessions[2].lifecycle.registration_count == 2


async def test_host_active_controller_changes_brokers_go_on() -> None:
    async with stage(3) as built, playing([1, 2], built.urls) as played:
        await played.ready()
        epochs = [session.lifecycle.broker_epoch for session in played.host.sessions.values()]
        await built.members[1].stop_serving()
        await built.elect(2)

        async def told() -> bool:
            return played.host.cache.controller == ControllerEpoch(2, built.quorum.leader_epoch)

        await eventually(told, "publishers are told of the new active controller")
        heard = played.host.sessions[1].lifecycle.answered_at_ms
        assert heard is not None

        async def answered() -> bool:
            at = played.host.sessions[1].lifecycle.answered_at_ms
            return at is not None and at > heard + 40

        await eventually(answered, "heartbeats are answered by the new active controller")
        await played.ready()
        assert [session.lifecycle.broker_epoch for session in played.host.sessions.values()] == epochs


async def test_host_imported_brokers_change_nothing_in_the_picture(tmp_path: Path) -> None:
    """A twin's brokers take over the registrations that are there: same incarnation, same epoch, same flags.

    That they were alive is taken on trust where no file would say otherwise, and that is told.
    """
    async with stage(1) as built, ControllerClient(built.urls) as client:
        async with playing("1-2", built.urls, racks=["a", "b"]) as source:
            await source.ready()
            await create(client, "t", [1, 2])
        image = built.members[1].controller.stable
        before = dict(image.cluster.brokers.items())
        with capture_logs() as noted:
            async with playing("1-2", built.urls, is_imported=True, last_run_file=tmp_path / "run.json") as twin:
                await twin.ready()
        with capture_logs() as trusted:
            async with playing("1-2", built.urls, is_imported=True) as twin:
                await twin.ready()
        assert "brokers.last_run_unknown" not in {line["event"] for line in noted}
        warned = [line["brokers"] for line in trusted if line["event"] == "brokers.last_run_unknown"]
        assert warned == [[1, 2]]
        async with playing("1-2", built.urls, is_imported=True) as twin:
            await twin.ready()
            after = built.members[1].controller.stable
            assert dict(after.cluster.brokers.items()) == before
            assert after.partitions.pages == image.partitions.pages
            _, reply = await twin.get("/v1/image")
            assert [broker["rack"] for broker in reply["brokers"]] == ["a", "b"]


async def test_host_imported_broker_that_is_not_registered_is_refused() -> None:
    async with stage(1) as built, playing([1], built.urls) as known:
        await known.ready()
        async with playing([1, 7], built.urls, is_imported=True) as played:
            with pytest.raises(NotInTheImage, match="broker 7 is not registered in the metadata; registered are: 1"):
                await played.task


async def test_host_without_controllers_says_so_and_ends() -> None:
    async with stage(1) as built:
        url = built.urls[0]
    short = LifecycleSettings(registration_timeout_ms=200, heartbeat_interval_ms=40)
    async with playing([1], [url], lifecycle=short) as played:
        with pytest.raises(NotCaughtUp, match=r"no controller could be followed within 0.2 s: .*cannot be reached"):
            await played.task


async def test_host_stopped_before_it_has_begun_ends_at_once() -> None:
    async with stage(1) as built:
        url = built.urls[0]
    async with playing([1, 2], [url]) as played:
        await played.leave()

        assert [broker.state for broker in played.host.readiness()] == [LifecycleState.STOPPED] * 2


async def test_host_digest_at_an_offset_equals_the_controllers() -> None:
    async with stage(1) as built, playing([1, 2], built.urls) as played, ControllerClient(built.urls) as client:
        await played.ready()
        await create(client, "t", [1, 2], [2, 1])
        image = built.members[1].controller.stable
        offset = image.provenance.end_offset
        status, reply = await played.get(f"/v1/image/digest?offset={offset}&wait_ms=5000")

        assert status == 200
        assert reply == {"state_offset": offset, "digest": digest_image(image).text, "form": DIGEST_FORM}
        status, reply = await played.get(f"/v1/image/digest?offset={offset + 100}")
        assert (status, reply["error"], reply["retriable"]) == (503, "REQUEST_TIMED_OUT", "yes")
        status, reply = await played.get("/v1/image/digest?offset=1")
        assert (status, reply["error"]) == (409, "OFFSET_OUT_OF_RANGE"), "inside the first batch"
        with pytest.raises(ApiError, match="offset 1") as refused:
            await client.digest_of(f"http://127.0.0.1:{played.endpoint.port}", 1)
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_host_two_hundred_brokers_in_one_process_are_ready() -> None:
    """The supported rehearsal: one loader, one image, two hundred sessions; every broker leads and follows."""
    calm = LifecycleSettings(heartbeat_interval_ms=1_000, request_timeout_ms=5_000)
    async with stage(1) as built, playing("1-200", built.urls, lifecycle=calm) as played:
        await ready_slowly(played)
        async with ControllerClient(built.urls) as client:
            await create(client, "t", *([n % 200 + 1, (n + 1) % 200 + 1] for n in range(400)))
            status, reply = await played.get("/readyz")
            assert (status, sum(broker["is_ready"] for broker in reply["brokers"])) == (200, 200)
            for number in range(20):
                await reassign(client, "t", number, [number % 200 + 1, (number + 1) % 200 + 1, (number + 7) % 200 + 1])
            for number in range(20):
                await sees(built, "t", number, "the reassignment is complete", adding_replicas=())


async def ready_slowly(played: Played) -> None:
    async def look() -> bool:
        return played.host.is_ready

    await eventually(look, "200 brokers are ready")


async def test_host_http_bad_requests_get_the_error_shape() -> None:
    async with stage(1) as built, playing([1, 2], built.urls) as played, ControllerClient(built.urls) as client:
        await played.ready()
        for name in ("a", "b", "c"):
            await create(client, name, [1, 2])
        await sees(built, "c", 0, "it is led", leader=1)
        offset = built.members[1].controller.stable.provenance.end_offset
        assert (await played.get(f"/v1/image/digest?offset={offset}&wait_ms=5000"))[0] == 200

        assert await played.get("/v1/topics?limit=2&prefix=") == (
            200,
            {
                "state_offset": offset,
                "topics": [
                    {
                        "name": name,
                        "topic_id": uuid_text(played.host.cache.image.topics.by_name[name].id),
                        "partitions": 1,
                    }
                    for name in ("a", "b")
                ],
                "next_after": "b",
            },
        )
        status, page = await played.get("/v1/topics?after=b")
        assert (status, [topic["name"] for topic in page["topics"]], page["next_after"]) == (200, ["c"], None)
        for path, wanted_status, error, words in (
            (
                "/v1/topics?limit=0",
                400,
                "INVALID_REQUEST",
                "parameter limit: Input should be greater than or equal to 1",
            ),
            ("/v1/topics?limit=1&limit=2", 400, "INVALID_REQUEST", "more than once"),
            ("/v1/image?x=1", 400, "INVALID_REQUEST", "parameter x: is not known"),
            ("/v1/topics/nothing", 404, "UNKNOWN_TOPIC_OR_PARTITION", "there is no topic 'nothing'"),
            ("/v2/image", 404, "RESOURCE_NOT_FOUND", "/v2/image"),
        ):
            status, reply = await played.get(path)
            assert (status, reply["error"], reply["retriable"]) == (wanted_status, error, "no"), (path, reply)
            assert words in reply["message"]


async def test_host_controllers_fall_silent_publishers_are_told_that_none_is_known() -> None:
    """By then the brokers may have been fenced. The shortest patience is that of an answer held back."""
    impatient = LifecycleSettings(heartbeat_interval_ms=40, request_timeout_ms=300, session_timeout_ms=300)
    async with stage(1) as built, playing([1], built.urls, lifecycle=impatient) as played:
        await played.ready()
        assert played.host.cache.controller == ControllerEpoch(1, built.quorum.leader_epoch)
        await built.members[1].stop_serving()

        async def told() -> bool:
            return played.host.cache.controller == ControllerEpoch(None, built.quorum.leader_epoch)

        await eventually(told, "publishers are told that no controller is known")
