"""A state on which the controller's decisions are tried: nothing is sent, nobody is asked, nothing is kept.

Each event is what the requests of brokers and operators, or the silence of brokers, bring the active controller to
write, replayed at once. No rule about partitions stands here: an answer with rules of its own would be wrong where they
differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from quorate.controller.answers.catching_up import requests_of_leaders
from quorate.controller.brokers.fencing import (
    HeartbeatDecision,
    apply_fencing,
    apply_heartbeat,
    decide_broker_heartbeat,
    decide_fence_stale_broker,
)
from quorate.controller.brokers.heartbeats import BrokerControlState, BrokerHeartbeats
from quorate.controller.brokers.registration import decide_register_broker
from quorate.controller.brokers.session_order import Session
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.head_counters import Elected, elected_by_record, elected_by_run
from quorate.controller.partitions.alter_partition import decide_alter_partition_columns
from quorate.controller.partitions.elections import decide_elect_leaders
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ElectionPartitions,
    ElectLeadersRequest,
    ReassignableTopic,
)
from quorate.controller.protocol.brokers import Listener, SupportedFeature
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from quorate.metadata_log.batches.builder import item_count
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.records import PartitionChangeRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.pages import Rows

#: Milliseconds on a clock that nobody reads: sessions begin here.
_NOW_MS: Final = 0.0
#: The first heartbeat takes the broker's leaderships away, the second one lets it go.
_HEARTBEATS_TO_STOP: Final = 2
#: Previous epoch of a broker that did not leave in order, as in its registration.
_CRASHED: Final = -1


class Rehearsal:
    """One state after the other. An event that is refused changes nothing."""

    def __init__(
        self,
        image: MetadataImage,
        config: ControllerConfig,
        counted: Rows | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """``counted``: of mass changes the rows whose elections are counted; None: all.

        ``check`` is called before each part of what is written; what it raises ends the rehearsal.
        """
        self._check = check
        #: The state now.
        self.image = image
        #: The elections so far.
        self.elected = Elected()
        self.config = config
        self._counted = counted

    def again(self, counted: Rows | None = None) -> Rehearsal:
        """Another one that goes on from here, with nothing counted yet. ``counted``: as of a new one."""
        return Rehearsal(self.image, self.config, counted, self._check)

    def broker(self, broker_id: int) -> BrokerRegistration:
        """A broker's registration.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED.
        """
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker_id} is registered")
        return broker

    def stop(self, broker_id: int) -> None:
        """Shut a broker down in order: it says so, is relieved of what it leads, and leaves.

        One that is fenced already leads nothing, and is silent.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED.
        """
        broker = self.broker(broker_id)
        if broker.is_fenced:
            return
        # Without sessions nobody is waited for: whoever stays will have applied what this one's shutdown wrote.
        heartbeats = self._heartbeats(starts_sessions=False)
        for _ in range(_HEARTBEATS_TO_STOP):
            decision = self._heard(heartbeats, broker, want_shut_down=True)
            if decision.next_state is BrokerControlState.SHUTDOWN_NOW:
                break

    def crash(self, broker_ids: Collection[int]) -> None:
        """Hear nothing of brokers any more, all from the same moment on, until their sessions are over.

        They are fenced in the controller's order. One that is fenced already has no session, and nothing to lose.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED.
        """
        silent = {self.broker(broker_id).id for broker_id in broker_ids}
        heartbeats = self._heartbeats(starts_sessions=True)
        later_ms = _NOW_MS + self.config.session_timeout_ms + 1
        for broker in self.image.cluster.brokers.values():
            if broker.id not in silent and not broker.is_fenced:
                heartbeats.note_contact(Session(broker.id, broker.epoch), later_ms)
        while True:
            decision = decide_fence_stale_broker(self.image, self.config, heartbeats, later_ms)
            if decision.reply is None:
                return
            self._write(decision)
            apply_fencing(heartbeats, decision)

    def start(self, broker_id: int) -> None:
        """Start a broker that is down, with the directories of its registration. Its replicas have not caught up yet.

        One that is fenced after a controlled shutdown left in order; any other may have lost what it had not flushed.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED; INVALID_REQUEST, it runs; what refuses its registration.
        """
        known = self.broker(broker_id)
        if not known.is_fenced:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"broker {broker_id} runs: only one that is down can be started")
        request = _registration(known, self.config.cluster_id)
        heartbeats = self._heartbeats(starts_sessions=False)
        end_offset = self.image.provenance.end_offset
        decision = decide_register_broker(self.image, self.config, heartbeats, request, end_offset, _NOW_MS)
        self._write(decision)
        self._heard(self._heartbeats(starts_sessions=False), self.broker(broker_id))

    def lose_directory(self, directory: Uuid) -> None:
        """Take away a log directory from the broker that has it online.

        Raises:
            ApiError: INVALID_REQUEST, no broker that runs has it.
        """
        owners = (broker for broker in self.image.cluster.brokers.values() if directory in broker.directories)
        owner = next(owners, None)
        if owner is None or owner.is_fenced:
            message = f"no broker that runs has the log directory {uuid_text(directory)} online"
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        self._heard(self._heartbeats(starts_sessions=False), owner, lost=[directory])

    def reassign(self, topics: Sequence[ReassignableTopic]) -> None:
        """Start reassignments, or cancel them. They go on when followers catch up.

        Raises:
            ApiError: what refuses the first one that is refused; none is started then.
        """
        request = AlterPartitionReassignmentsRequest(topics=list(topics))
        decision = decide_alter_partition_reassignments(self.image, self.config, request)
        for topic in decision.reply.responses:
            for partition in topic.partitions:
                if partition.error_code is not ErrorCode.NONE:
                    what = f"{topic.name}-{partition.partition_index}: {partition.error_message}"
                    raise ApiError(partition.error_code, what)
        self._write(decision)

    def catch_up(self) -> None:
        """Let every replica that runs be in sync, as its leader asks for; reassignments complete by that."""
        for broker in sorted(self.image.cluster.brokers.values(), key=lambda one: one.id):
            for asked in requests_of_leaders(self.image, broker.id):
                self._write(decide_alter_partition_columns(self.image, self.config, broker.id, broker.epoch, asked))

    def elect_uncleanly(self, rows: Rows) -> None:
        """Elect a leader in partitions that have none, whoever it is, as an operator may ask for."""
        table, topics = self.image.partitions, self.image.topics.by_id
        wanted: dict[str, list[int]] = {}
        for row in rows.tolist():
            wanted.setdefault(topics[table.topic_id(row)].name, []).append(table.partition_id(row))
        asked = [ElectionPartitions(topic=name, partitions=numbers) for name, numbers in wanted.items()]
        request = ElectLeadersRequest(election_type="UNCLEAN", topic_partitions=asked)
        self._write(decide_elect_leaders(self.image, self.config, request))

    def _heartbeats(self, *, starts_sessions: bool) -> BrokerHeartbeats:
        timeout_ms = self.config.session_timeout_ms
        return BrokerHeartbeats.of_image(self.image, timeout_ms, _NOW_MS, starts_sessions=starts_sessions)

    def _heard(
        self,
        heartbeats: BrokerHeartbeats,
        broker: BrokerRegistration,
        *,
        want_shut_down: bool = False,
        lost: Sequence[Uuid] = (),
    ) -> HeartbeatDecision:
        request = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            current_metadata_offset=self.image.provenance.last_contained_offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(lost),
        )
        decision = decide_broker_heartbeat(self.image, self.config, heartbeats, request, _NOW_MS)
        self._write(decision)
        apply_heartbeat(heartbeats, request, decision, self.image.provenance.end_offset)
        return decision

    def _write(self, decision: Decision[object]) -> None:
        """Replay a decision, slice by slice where it is a pass, in the epoch and at the time of the state."""
        covers = self.image.provenance
        for part in decision.slices or [lambda _: decision.records]:
            self._check()
            items = [item for item in part(self.image) if item_count(item)]
            if items:
                self._count(items)
                state = ReplayState(self.image)
                self.image = state.replay_items(items, state.end_offset, covers.epoch, covers.log_time_ms).stable

    def _count(self, items: Sequence[BatchItem]) -> None:
        for item in items:
            if isinstance(item, PartitionChangeRun):
                more = elected_by_run(
                    self.image, item if self._counted is None else _part(self.image, item, self._counted)
                )
            elif isinstance(item, VersionedRecord) and isinstance(item.record, PartitionChangeRecord):
                more = elected_by_record(self.image, item.record)
            else:
                continue
            self.elected = Elected(*map(sum, zip(self.elected, more, strict=True)))


def _part(image: MetadataImage, run: PartitionChangeRun, rows: Rows) -> PartitionChangeRun:
    """The changes in these rows."""
    is_in = np.isin(image.partitions.rows_for(run.topic_ids, run.partition_ids), rows)
    columns: dict[str, Any] = {name: column[is_in] for name, column in run.columns()}
    return replace(run, **columns)


def _registration(known: BrokerRegistration, cluster_id: str) -> BrokerRegistrationRequest:
    new_id = hashlib.sha256(known.incarnation_id).digest()[:16]
    return BrokerRegistrationRequest(
        broker_id=known.id,
        cluster_id=cluster_id,
        incarnation_id=new_id,
        listeners=[
            Listener(name=one.name, host=one.host, port=one.port, security_protocol=one.security_protocol)
            for one in known.listeners
        ],
        features=[
            SupportedFeature(
                name=one.name,
                min_supported_version=one.min_supported_version,
                max_supported_version=one.max_supported_version,
            )
            for one in known.supported_features
        ],
        rack=known.rack,
        # One from before there were directories gets its first.
        log_dirs=list(known.directories or (new_id,)),
        cordoned_log_dirs=list(known.cordoned_directories),
        previous_broker_epoch=known.epoch if known.in_controlled_shutdown else _CRASHED,
    )
