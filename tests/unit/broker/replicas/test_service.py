"""What a service says of its replicas: what does not fit changes nothing, and what was said early is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.publisher import Manifest
from quorate.broker.replicas.manager import Station
from quorate.broker.replicas.service import NotNoted, ServiceReplicas
from quorate.metadata_log.errors import InvalidArgument
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE
from tests.unit.controller.small_cluster import SmallCluster


class Stage:
    """Broker 1 is played; brokers 1 and 2 have a partition that 1 leads, and 2 is outside the ISR."""

    def __init__(self, *, holds_unfencing: bool = False) -> None:
        self.cluster = SmallCluster()
        self.cluster.create("t", [1, 2])
        self.cluster.heartbeat(2, want_fence=True)
        self.cluster.heartbeat(2)
        self.unfenced: list[int] = []
        self.replicas = ServiceReplicas(holds_unfencing=holds_unfencing)
        self.begin()
        self.topic_id = self.cluster.topic_id("t")
        self.leader_epoch = self.cluster.partition("t").leader_epoch
        self.show()

    def begin(self) -> None:
        self.replicas.begin(
            Station(
                rpc=cast("ControllerRpc", None),
                cluster_id=lambda: "a-cluster",
                serves_at=lambda: None,
                played=lambda: frozenset({1}),
                epochs=dict,
                now_ms=lambda: 0.0,
                ready_to_unfence=self.unfenced.append,
                hold_unfencing=lambda _: None,
                directories_changed=lambda _: None,
                cordon=lambda _broker, _directories: None,
                session_valid_until_ms=lambda _: 0.0,
                call=lambda told, *arguments: told(*arguments),
            )
        )

    def show(self) -> None:
        image = self.cluster.image
        manifest = Manifest(image.provenance, 1, 1, 0.0, False)
        self.replicas.on_metadata_update(MetadataDelta(EMPTY_IMAGE, image), image, manifest)

    def caught_up(self) -> None:
        self.replicas.caught_up(self.topic_id, 0, self.leader_epoch, 2, self.cluster.epoch(2))


@pytest.mark.parametrize(
    ("later", "code"), [(-1, "FENCED_LEADER_EPOCH"), (1, "UNKNOWN_LEADER_EPOCH"), (2**40, "UNKNOWN_LEADER_EPOCH")]
)
def test_service_word_of_another_leader_epoch_takes_nothing_back(later: int, code: str) -> None:
    stage = Stage()
    stage.caught_up()
    assert stage.replicas.maximal_isr(stage.topic_id, 0) == {1, 2}

    with pytest.raises(NotNoted, match=code):
        stage.replicas.fell_behind(stage.topic_id, 0, stage.leader_epoch + later, 2)

    assert stage.replicas.maximal_isr(stage.topic_id, 0) == {1, 2}, "nothing was changed"
    stage.replicas.fell_behind(stage.topic_id, 0, stage.leader_epoch, 2)
    assert stage.replicas.maximal_isr(stage.topic_id, 0) == {1}


def test_service_word_of_what_cannot_be_is_refused_as_what_is_not_there() -> None:
    stage = Stage()
    said = stage.replicas.fell_behind
    for topic_id, partition in ((b"x", 0), (stage.topic_id * 2, 0), (stage.topic_id, 2**40), (stage.topic_id, -1)):
        with pytest.raises(NotNoted, match="UNKNOWN_TOPIC_ID"):
            said(topic_id, partition, stage.leader_epoch, 2)
    for broker_id in (2**40, -(2**40)):
        with pytest.raises(NotNoted, match="NOT_LEADER_OR_FOLLOWER"):
            said(stage.topic_id, 0, stage.leader_epoch, broker_id)
    with pytest.raises(NotNoted, match="FENCED_LEADER_EPOCH"):
        said(stage.topic_id, 0, -(2**40), 2)


def test_refused_word_says_what_it_was_about_and_what_is_so() -> None:
    stage = Stage()
    at, epoch, broker_epoch = stage.topic_id, stage.leader_epoch, stage.cluster.epoch(2)
    calls: dict[str, Callable[[], object]] = {
        f"t-0, replica 2: it was said under leader epoch {epoch + 1}, the newest image has {epoch}: say it again when "
        "an image has yours (UNKNOWN_LEADER_EPOCH)": lambda: stage.replicas.fell_behind(at, 0, epoch + 1, 2),
        f"t-0, replica 2: it was said under leader epoch -1, the newest image has {epoch} (FENCED_LEADER_EPOCH)": (
            lambda: stage.replicas.fell_behind(at, 0, -1, 2)
        ),
        "t-0, replica 7: its leader is 1 and its replicas [1, 2]: no follower of a leader here "
        "(NOT_LEADER_OR_FOLLOWER)": lambda: stage.replicas.fell_behind(at, 0, epoch, 7),
        f"t-0, replica 2: it was said under epoch 1 of the broker, which is registered under epoch {broker_epoch} "
        "(STALE_BROKER_EPOCH)": lambda: stage.replicas.caught_up(at, 0, epoch, 2, 1),
        "t-0, replica 9: it was said under epoch 1 of the broker, which is not registered (STALE_BROKER_EPOCH)": (
            lambda: stage.replicas.caught_up(at, 0, epoch, 9, 1)
        ),
        "t-5: the newest image has no such partition (UNKNOWN_TOPIC_ID)": lambda: stage.replicas.maximal_isr(at, 5),
        f"topic {bytes(16).hex()}-0: the newest image has no such partition (UNKNOWN_TOPIC_ID)": (
            lambda: stage.replicas.maximal_isr(bytes(16), 0)
        ),
    }
    for sentence, call in calls.items():
        with pytest.raises(NotNoted) as refused:
            call()
        assert str(refused.value) == sentence


def test_manager_is_one_workers_at_a_time() -> None:
    stage = Stage()
    with pytest.raises(InvalidArgument, match="ServiceReplicas 'service-replicas' is at work for another worker"):
        stage.begin()
    stage.replicas.station = None
    assert not stage.replicas.has_session(1)
    stage.begin()


async def test_service_that_resigned_before_it_was_begun_is_not_let_in() -> None:
    stage = Stage()
    stage.replicas.resign(1)
    await one_turn(stage.replicas)
    assert stage.unfenced == []

    stage.replicas.ready(1)
    assert stage.unfenced == [1]


async def test_service_is_ready_in_the_worker_for_which_that_was_said() -> None:
    stage = Stage(holds_unfencing=True)
    stage.replicas.ready(1)
    await one_turn(stage.replicas)
    assert stage.unfenced == [1, 1]

    stage.replicas.station = None
    stage.begin()
    await one_turn(stage.replicas)

    assert stage.unfenced == [1, 1], "another worker has not said so"


async def one_turn(replicas: ServiceReplicas) -> None:
    """Run it until it waits."""
    running = asyncio.create_task(replicas.run())
    await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
