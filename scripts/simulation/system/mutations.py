"""Single lines of production, above the quorum and in its disk, turned into mistakes: the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Final

import numpy as np

from quorate.broker.controllers import feed
from quorate.broker.lifecycle import lease
from quorate.broker.lifecycle.lifecycle import BrokerLifecycle
from quorate.broker.metadata import loader
from quorate.broker.replicas.led_rows import ALWAYS, LedRows, Standing
from quorate.controller.background.checkpoint_writer import CheckpointWriter
from quorate.controller.brokers import fencing
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.client import connection
from quorate.controller.client.attempts import Attempts
from quorate.controller.configs import labels
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine import quorum_controller
from quorate.controller.engine.findings import Findings
from quorate.controller.engine.head import Head
from quorate.controller.engine.interfaces import WriteContext, WriteRequest
from quorate.controller.engine.purgatory import Purgatory
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http import forwarding
from quorate.controller.partitions import alter_partition, rules
from quorate.controller.partitions.columns import PartitionRows, PartitionTargets
from quorate.controller.topics import topics
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController
from quorate.metadata_log.segments.segment_files import SegmentFiles
from quorate.scripts.simulation.quorum.patches import Patches
from quorate.snapshots.checkpoints import checkpoint
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table import table_editor
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.row_changes import columns_in_place


def _replies_leave_before_their_commit() -> Patches:
    def add(self: Purgatory, end_offset: int, reply: Any, result: object) -> None:
        reply.complete(result)

    return [(Purgatory, "add", add)]


def _answers_rest_on_what_may_be_lost() -> Patches:
    usual = Findings.add
    return [(Findings, "add", lambda self, _, give, fail: usual(self, 0, give, fail))]


def _answers_without_records_ask_nobody() -> Patches:
    """They wait for what they rest on only."""
    usual = Findings.add

    def add(self: Findings, end_offset: int, give: Any, fail: Any) -> None:
        usual(self, end_offset, give, fail)
        self._confirmed = self._asked + 1
        self.complete_up_to(self._committed)

    return [(Findings, "add", add)]


def _a_commit_counts_as_a_confirmation() -> Patches:
    """Of acknowledgements that may have lain in a socket since before the request came."""
    usual = Findings.complete_up_to

    def complete_up_to(self: Findings, high_watermark: int) -> None:
        if any(finding.end_offset > self._committed for finding in self._waiting):
            self._confirmed = self._asked + 1
        usual(self, high_watermark)

    return [(Findings, "complete_up_to", complete_up_to)]


def _batches_take_the_wall_clock() -> Patches:
    usual = Head.stage

    def stage(self: Head, piece: bytes, count: int, wall_ms: int) -> None:
        self._timestamp = min(self._timestamp, wall_ms)
        usual(self, piece, count, wall_ms)

    return [(Head, "stage", stage)]


def _purgatory_forgets_an_entry() -> Patches:
    usual = Purgatory.add
    numbers = count()

    def add(self: Purgatory, end_offset: int, reply: Any, result: object) -> None:
        if next(numbers) % 5:
            usual(self, end_offset, reply, result)

    return [(Purgatory, "add", add)]


def _unknown_outcomes_are_called_refusals() -> Patches:
    return [(quorum_controller, "OutcomeUnknown", lambda *_: NotController(None))]


def _linearizable_reads_ask_nobody() -> Patches:
    async def read(self: QuorumController, operation: Callable[[Any], Any], *, is_linearizable: bool = False) -> Any:
        return operation(self.stable)

    return [(QuorumController, "append_read_event", read)]


def _deposed_controllers_stay_active() -> Patches:
    return [(QuorumController, "_renounce", lambda _: None)]


def _an_epoch_begins_with_the_head_of_the_last() -> Patches:
    usual = QuorumController._claim
    heads: dict[int, Head] = {}

    def claim(self: QuorumController, epoch: int) -> None:
        usual(self, epoch)
        assert self._head is not None
        before = heads.get(id(self))
        if before is not None:
            self._head.state = before.state
        heads[id(self)] = self._head

    return [(QuorumController, "_claim", claim)]


def _commits_are_taken_for_further_than_they_are() -> Patches:
    usual = Head.commit
    return [(Head, "commit", lambda self, _: usual(self, 2**62))]


def _standbys_apply_twice() -> Patches:
    usual = QuorumController._replay

    def replay(self: QuorumController, batches: Any) -> None:
        usual(self, batches)
        usual(self, batches)

    return [(QuorumController, "_replay", replay)]


def _broker_epochs_are_not_compared() -> Patches:
    def check(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        return image.cluster.brokers[broker_id]

    return [(fencing, "check_broker_epoch", check), (alter_partition, "check_broker_epoch", check)]


def _fenced_brokers_are_elected() -> Patches:
    return [(BrokerRegistration, "is_active", property(lambda _: True))]


def _leader_epochs_stay() -> Patches:
    usual = columns_in_place

    def columns(*change: Any) -> dict[str, Any] | None:
        changed = usual(*change)
        return changed and {name: value for name, value in changed.items() if name != "leader_epochs"}

    return [(table_editor, "columns_in_place", columns)]


def _broker_epochs_fall() -> Patches:
    usual = WriteContext

    def context(image: MetadataImage, offset: int, *rest: Any) -> WriteContext:
        return usual(image, max(0, offset - 40), *rest)

    return [(quorum_controller, "WriteContext", context)]


def _checkpoints_leave_out_what_follows_the_topics() -> Patches:
    def nothing(image: MetadataImage) -> Iterator[Any]:
        yield from ()

    return [(checkpoint, "after_topics", nothing)]


def _checkpoints_are_of_the_head() -> Patches:
    usual = CheckpointWriter._begin

    def begin(self: CheckpointWriter) -> None:
        state: Any = self._state
        stable = state._state
        if state._head is not None:
            state._state = state._head.state
        try:
            usual(self)
        finally:
            state._state = stable

    return [(CheckpointWriter, "_begin", begin)]


def _segments_are_not_synced() -> Patches:
    def sync(self: SegmentFiles) -> Iterator[None]:
        self._is_dirty = False
        yield

    return [(SegmentFiles, "sync", sync)]


def _writes_are_sent_twice() -> Patches:
    usual = Attempts.send

    async def send(self: Attempts, request: Any, *, is_repeatable: bool) -> Any:
        return await usual(self, request, is_repeatable=True)

    return [(Attempts, "send", send)]


def _what_was_sent_and_not_answered_counts_as_not_sent() -> Patches:
    return [(connection, "NoAnswer", connection.NotSent)]


def _a_forwarded_write_without_answer_counts_as_refused() -> Patches:
    def no_answer(peer: Any, error: Exception, *, is_write: bool) -> ApiError:
        return ApiError(ErrorCode.REQUEST_TIMED_OUT, "no answer")

    return [(forwarding, "_no_answer", no_answer)]


def _a_forgotten_broker_does_not_register_again() -> Patches:
    return [(BrokerLifecycle, "_forgotten", lambda _: None)]


def _loaders_believe_every_answer() -> Patches:
    """The records of an answer are replayed up to its last batch but one, and taken for all of it."""
    usual = feed.check_batches

    def check(data: Any, position: Any, status: Any) -> Any:
        checked = usual(data, position, status)
        return checked[:-2] + checked[-1:] if len(checked) > 1 else checked

    return [(loader, "check_batches", check)]


def _decisions_are_made_on_the_stable_state() -> Patches:
    usual = QuorumController._decide

    def decide(self: QuorumController, head: Head, request: WriteRequest[Any]) -> None:
        def on_stable(context: WriteContext) -> Decision[Any]:
            decided: Decision[Any] = request.operation(context._replace(image=self.stable))
            return decided

        usual(self, head, replace(request, operation=on_stable))

    return [(QuorumController, "_decide", decide)]


def _leaders_believe_that_everybody_has_everything() -> Patches:
    usual = Standing.wanted_isr

    def wanted_isr(self: Standing, led: LedRows) -> Any:
        known = led.caught_up_ms
        led.caught_up_ms = np.full_like(known, ALWAYS)
        try:
            return usual(self, led)
        finally:
            led.caught_up_ms = known

    return [(Standing, "wanted_isr", wanted_isr)]


def _reassignments_wait_for_nobody() -> Patches:
    def complete(rows: PartitionRows, targets: PartitionTargets) -> Any:
        """As if none were being added."""
        return usual(rows, replace(targets, adding=np.zeros_like(rows.adding)))

    usual = rules._complete_reassignment
    return [(rules, "_complete_reassignment", complete)]


def _leases_are_as_long_as_sessions() -> Patches:
    return [(lease, "LEASE_SHARE", 1.0)]


def _sessions_are_promised_by_whoever_takes_itself_for_active() -> Patches:
    usual = BrokerHeartbeats.promised_ms

    def promised_ms(self: BrokerHeartbeats, broker_id: int, metadata_offset: int, now_ms: float) -> int:
        self._confirmed_ms = now_ms
        return usual(self, broker_id, metadata_offset, now_ms)

    return [(BrokerHeartbeats, "promised_ms", promised_ms)]


def _sessions_are_promised_to_brokers_that_are_behind() -> Patches:
    return [(BrokerHeartbeats, "unfenced", lambda *_: None)]


def _conditions_on_labels_hold() -> Patches:
    return [(labels, "_check_holds", lambda *_: None)]


def _labels_outlive_their_topic() -> Patches:
    return [(topics, "labels_gone_with_topic", lambda *_: [])]


MUTATIONS: Final[dict[str, Callable[[], Patches]]] = {
    "reply-after-commit": _replies_leave_before_their_commit,
    "answer-rests-on-committed": _answers_rest_on_what_may_be_lost,
    "no-op-barrier": _answers_without_records_ask_nobody,
    "commit-is-no-barrier": _a_commit_counts_as_a_confirmation,
    "time-of-the-last-batch": _batches_take_the_wall_clock,
    "purgatory-keeps-all": _purgatory_forgets_an_entry,
    "unknown-outcome": _unknown_outcomes_are_called_refusals,
    "read-barrier": _linearizable_reads_ask_nobody,
    "renounce": _deposed_controllers_stay_active,
    "head-of-its-epoch": _an_epoch_begins_with_the_head_of_the_last,
    "commit-to-the-watermark": _commits_are_taken_for_further_than_they_are,
    "apply-once": _standbys_apply_twice,
    "decide-on-the-head": _decisions_are_made_on_the_stable_state,
    "broker-epoch": _broker_epochs_are_not_compared,
    "elect-the-active": _fenced_brokers_are_elected,
    "leader-epoch-rises": _leader_epochs_stay,
    "broker-epoch-rises": _broker_epochs_fall,
    "checkpoint-of-everything": _checkpoints_leave_out_what_follows_the_topics,
    "checkpoint-of-the-committed": _checkpoints_are_of_the_head,
    "segment-sync": _segments_are_not_synced,
    "write-sent-once": _writes_are_sent_twice,
    "sent-is-sent": _what_was_sent_and_not_answered_counts_as_not_sent,
    "forwarded-is-sent": _a_forwarded_write_without_answer_counts_as_refused,
    "forgotten-registers": _a_forgotten_broker_does_not_register_again,
    "every-batch-replayed": _loaders_believe_every_answer,
    "in-sync-is-said": _leaders_believe_that_everybody_has_everything,
    "lease-bears-drift": _leases_are_as_long_as_sessions,
    "promise-to-the-informed": _sessions_are_promised_to_brokers_that_are_behind,
    "promise-is-confirmed": _sessions_are_promised_by_whoever_takes_itself_for_active,
    "reassignment-waits": _reassignments_wait_for_nobody,
    "labels-are-compared": _conditions_on_labels_hold,
    "labels-go-with-topics": _labels_outlive_their_topic,
}
