"""A small cluster on which decisions are tried: what a decision writes is replayed, as the controller does."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.controller.brokers.fencing import apply_heartbeat, decide_broker_heartbeat
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.brokers.registration import apply_registration, decide_register_broker
from quorate.controller.brokers.session_order import Session
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ReplicaAssignment,
    SupportedFeature,
    TopicConfig,
)
from quorate.controller.topics.topics import decide_create_topics
from quorate.metadata_log.batches.builder import encode_items, item_count
from quorate.metadata_log.batches.columns import decode_body
from quorate.metadata_log.batches.runs import PartitionRun
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import FeatureLevelRecord, Record, VersionedRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config
from tests.guards.sound_images import watch

CLUSTER_ID = "a-cluster"
CONFIG = controller_config(node_id=3000, cluster_id=CLUSTER_ID, session_timeout_ms=9_000)


def uuid(kind: int, number: int, nth: int = 0) -> Uuid:
    """Ids that say what they are: 1 = incarnation, 2 = directory, 3 = topic."""
    return bytes([kind]) + number.to_bytes(8, "big") + nth.to_bytes(7, "big")


def registration(broker: int, incarnation: int = 0, **changes: object) -> BrokerRegistrationRequest:
    values: dict[str, object] = {
        "broker_id": broker,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid(1, broker, incarnation),
        "log_dirs": [uuid(2, broker)],
        "features": [
            SupportedFeature(name="metadata.version", min_supported_version=7, max_supported_version=30),
            SupportedFeature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
        ],
    }
    return BrokerRegistrationRequest.model_validate(values | changes)


class SmallCluster:
    """An image, soft state and a clock."""

    def __init__(self, brokers: int = 3, *, elr: bool = False, config: ControllerConfig = CONFIG) -> None:
        self.config = config
        self.image = EMPTY_IMAGE
        self.next_offset = 0
        self.now_ms = 0.0
        self.heartbeats = BrokerHeartbeats(config.session_timeout_ms)
        self._topic_ids = self._new_ids()
        watch(lambda: self.image)
        self.write(FeatureLevelRecord("metadata.version", 30))
        if elr:
            self.write(FeatureLevelRecord("eligible.leader.replicas.version", 1))
        for broker in range(brokers):
            self.register(registration(broker))
            self.heartbeat(broker)

    def _new_ids(self) -> Iterator[Uuid]:
        number = 0
        while True:
            yield uuid(3, number)
            number += 1

    def new_topic_id(self) -> Uuid:
        return next(self._topic_ids)

    # --- changing ------------------------------------------------------------------------------------

    def write(self, *records: Record) -> None:
        self.commit(Decision([VersionedRecord(record, 0) for record in records], None))

    def commit(self, decision: Decision[object]) -> list[Record]:
        """Send the records through the log's bytes, replay them, and give them back one by one."""
        written: list[Record] = []
        for part in decision.slices or [lambda _: decision.records]:
            items = [item for item in part(self.image) if item_count(item)]
            count = sum(map(item_count, items))
            decoded = list(decode_body(encode_items(items, 0), 0, count)) if items else []
            self.next_offset += count
            self.image = replay(self.image, decoded, Provenance(self.next_offset - 1, 1, 0))
            written += records_of(items)
        return written

    def register(self, request: BrokerRegistrationRequest) -> list[Record]:
        decision = decide_register_broker(
            self.image, self.config, self.heartbeats, request, self.next_offset, self.now_ms
        )
        before = self.image
        records = self.commit(decision)
        apply_registration(self.heartbeats, before, request, decision, self.next_offset)
        return records

    def heartbeat(self, broker: int, **changes: object) -> tuple[BrokerHeartbeatResponse, list[Record]]:
        values = {
            "broker_id": broker,
            "broker_epoch": self.epoch(broker),
            "current_metadata_offset": self.next_offset - 1,
        }
        request = BrokerHeartbeatRequest.model_validate(values | changes)
        self.heartbeats.note_contact(Session(request.broker_id, request.broker_epoch), self.now_ms)
        decision = decide_broker_heartbeat(self.image, self.config, self.heartbeats, request, self.now_ms)
        records = self.commit(decision)
        apply_heartbeat(self.heartbeats, request, decision, self.next_offset)
        return decision.reply, records

    def create(
        self, name: str, *assignments: list[int], configs: dict[str, str | None] | None = None
    ) -> CreateTopicsResponse:
        topic = CreatableTopic(
            name=name,
            assignments=[
                ReplicaAssignment(partition_index=number, broker_ids=ids) for number, ids in enumerate(assignments)
            ],
            configs=[TopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        return self.create_topics(CreateTopicsRequest(topics=[topic]))

    def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        decision = decide_create_topics(self.image, self.config, request, JavaRandom(1), self.new_topic_id)
        self.commit(decision)
        return decision.reply

    # --- looking -------------------------------------------------------------------------------------

    def epoch(self, broker: int) -> int:
        registered = self.image.cluster.brokers.get(broker)
        return -1 if registered is None else registered.epoch

    def topic_id(self, name: str) -> Uuid:
        return self.image.topics.by_name[name].id

    def partition(self, name: str, number: int = 0) -> Partition:
        row = self.image.partitions.row(self.topic_id(name), number)
        assert row is not None, (name, number)
        return self.image.partitions.partition(row)


def records_of(items: object) -> Iterator[Record]:
    """Records and the rows of runs, one by one."""
    assert isinstance(items, list)
    for item in items:
        if isinstance(item, VersionedRecord):
            yield item.record
        else:
            run: PartitionRun = item
            yield from (run.record(row) for row in range(len(run)))
