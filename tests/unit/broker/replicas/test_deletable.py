"""When a service may delete the data of replicas that are its brokers' no more."""

from __future__ import annotations

from typing import cast

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.publisher import Manifest
from quorate.broker.replicas.manager import Station
from quorate.broker.replicas.service import ServiceReplicas
from quorate.metadata_log.records.records import (
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.difference.local_changes import LocalReplica
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import cluster_image, partition, registration, replayed, uuid

TOPIC = uuid(0)


class Service(ServiceReplicas):
    """Broker 1; writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.epochs = {1: 1}
        self._shown = EMPTY_IMAGE
        nothing = Station(
            rpc=cast("ControllerRpc", None),
            cluster_id=lambda: "a-cluster",
            serves_at=lambda: None,
            played=lambda: frozenset({1}),
            epochs=lambda: self.epochs,
            now_ms=lambda: 0.0,
            ready_to_unfence=lambda _: None,
            hold_unfencing=lambda _: None,
            directories_changed=lambda _: None,
            cordon=lambda _broker, _directories: None,
            session_valid_until_ms=lambda _: 0.0,
            call=lambda told, *arguments: told(*arguments),
        )
        self.begin(nothing)

    def lead(self, broker_id: int, replica: LocalReplica) -> None:
        self.told.append("lead")

    def follow(self, broker_id: int, replica: LocalReplica) -> None:
        self.told.append("follow")

    def drop(self, broker_id: int, replica: LocalReplica) -> None:
        self.told.append("drop")

    def on_deletable(self, broker_id: int, replica: LocalReplica) -> None:
        assert (broker_id, replica.topic_id, replica.partition_id) == (1, TOPIC, 0)
        self.told.append("deletable")

    def show(self, image: MetadataImage) -> list[str]:
        self.told.clear()
        delta, self._shown = MetadataDelta(self._shown, image), image
        self.on_metadata_update(delta, image, Manifest(image.provenance, 1, 1, 0.0, False))
        return list(self.told)


def image_with(*partitions: PartitionRecord) -> MetadataImage:
    return cluster_image([1, 2], list(partitions))


def moved_away(image: MetadataImage) -> MetadataImage:
    directories = (uuid(502),)
    change = PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC, replicas=(2,), isr=(2,), leader=2, directories=directories
    )
    return replayed(image, change)


def test_data_of_a_replica_that_moved_or_was_deleted_may_go_at_once() -> None:
    for gone in (moved_away, lambda image: replayed(image, RemoveTopicRecord(TOPIC))):
        service, there = Service(), image_with(partition(0, 0, [1, 2]))
        assert service.show(there) == ["lead"]
        assert not service.may_delete(1, TOPIC, 0)
        assert service.show(gone(there)) == ["drop", "deletable"]
        assert service.may_delete(1, TOPIC, 0)
        assert service.show(replayed(gone(there), NoOpRecord())) == [], "once"


def test_data_that_an_older_image_does_not_have_stay() -> None:
    """Another controller is followed that is behind; what it lacks comes back."""
    service, before = Service(), image_with()
    there = replayed(before, TopicRecord(name="topic-0", topic_id=TOPIC), partition(0, 0, [1, 2]))
    assert service.show(there) == ["lead"]
    assert service.show(before) == ["drop"]
    assert not service.may_delete(1, TOPIC, 0)
    assert service.show(there) == ["lead"]
    assert service.show(replayed(there, NoOpRecord())) == []


def test_data_that_neither_an_older_image_nor_the_newest_has_may_go_then() -> None:
    service, before = Service(), image_with()
    there = replayed(before, TopicRecord(name="topic-0", topic_id=TOPIC), partition(0, 0, [1, 2]))
    service.show(there)
    assert service.show(before) == ["drop"]
    assert service.show(moved_away(there)) == ["deletable"]


def test_data_of_a_run_before_stay_until_the_image_has_this_runs_registration() -> None:
    service = Service()
    service.epochs = {}
    old = image_with()
    service.show(old)
    assert not service.may_delete(1, TOPIC, 0), "it is not registered"
    service.epochs = {1: 7}
    assert not service.may_delete(1, TOPIC, 0), "the image has the registration of the run before"
    service.show(replayed(old, registration(1, epoch=7, incarnation=1)))
    assert service.may_delete(1, TOPIC, 0)
    assert service.may_delete(1, b"x", -1), "what cannot be is not there"
