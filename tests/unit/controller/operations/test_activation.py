"""How an epoch begins: what a new active controller writes first, and what becomes of a transaction that was cut."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from quorate.controller.decisions import record_slices
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.bootstrap import decide_activation, fresh_records
from quorate.controller.process.composition import Machine, compose
from quorate.metadata_log.batches.batch import data_batch, iter_records, parse_header, place_batch
from quorate.metadata_log.errors import OutcomeUnknown
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    Record,
    VersionedRecord,
)
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_config, controller_limits, role_settings
from tests.unit.controller.manual_quorum import Committed, ManualQuorum, RecordingFaults, topic, writes
from tests.unit.controller.manual_scheduler import ManualScheduler

ABORT = AbortTransactionRecord("Controller failover")
NO_OP = VersionedRecord(NoOpRecord(), 0)
MIN_ISR = ConfigRecord(4, "", "min.insync.replicas", "1")
BOOTSTRAP: list[Record] = [
    BeginTransactionRecord("Bootstrap records"),
    *(record.record for record in fresh_records()),
    MIN_ISR,
    EndTransactionRecord(),
]


def log_of(*batches: Sequence[Record]) -> list[bytes]:
    """A log in real bytes, all of epoch 1."""
    placed: list[bytes] = []
    for records in batches:
        base = parse_header(placed[-1]).end_offset if placed else 0
        placed.append(place_batch(data_batch([(record, 0) for record in records], 1_000), base, 1))
    return placed


def replayed(batches: Sequence[bytes]) -> ReplayState:
    state = ReplayState()
    for batch in batches:
        state = state.replay_batch(batch)
    return state


def records_in(batches: Sequence[bytes]) -> list[Record]:
    return [logged.record for batch in batches for logged in iter_records(batch)]


def activation(*batches: Sequence[Record]) -> list[Record]:
    """What a new leader of such a log writes first."""
    decision = decide_activation(replayed(log_of(*batches)), fresh_records())
    return [item.record for item in decision.records if isinstance(item, VersionedRecord)]


def test_empty_log_gets_the_bootstrap_records_in_a_transaction() -> None:
    assert activation() == BOOTSTRAP


def test_bootstrap_of_a_level_without_transactions_is_not_bracketed() -> None:
    bootstrap = [VersionedRecord(FeatureLevelRecord("metadata.version", 12), 0)]
    assert decide_activation(ReplayState(), bootstrap).records == bootstrap


@pytest.mark.parametrize("durable", range(1, len(BOOTSTRAP)))
def test_bootstrap_that_was_cut_is_aborted_and_written_again(durable: int) -> None:
    """Kafka takes a log with the Begin alone for one that is not empty; the state before it is what counts here."""
    assert activation(BOOTSTRAP[:durable]) == [ABORT, *BOOTSTRAP]


def test_log_that_is_in_use_gets_nothing_and_an_open_transaction_in_it_is_aborted() -> None:
    assert activation(BOOTSTRAP) == []
    assert activation(BOOTSTRAP, [BeginTransactionRecord("work")], [topic(1).record]) == [ABORT]


class Trio:
    """Three controllers in their production role on one log of real bytes, which commits when the test says so."""

    def __init__(self, idle_noop_interval_ms: float = 0) -> None:
        self._settings = role_settings(idle_noop_interval_ms=idle_noop_interval_ms)
        self.scheduler = ManualScheduler()
        self.quorum = ManualQuorum()
        self.faults = RecordingFaults()
        self.controllers = {node_id: self._controller(node_id) for node_id in (1, 2, 3)}

    def _controller(self, node_id: int) -> QuorumController:
        config = controller_config(node_id=node_id, cluster_id="c")
        machine = Machine(self.scheduler, self.faults, JavaRandom(1), lambda: bytes(16))
        return compose(config, self._settings, controller_limits(), fresh_records(), self.quorum, machine).controller

    def elect(self, node_id: int) -> None:
        """A node leads the next epoch; what the last leader had not committed is gone."""
        self.quorum.drop_uncommitted()
        self.quorum.leader_id = node_id
        self.quorum.leader_epoch += 1
        for controller in self.controllers.values():
            controller.on_leader_change(node_id, self.quorum.leader_epoch)
        self.scheduler.run()

    def commit(self, count: int = 1_000) -> None:
        """Everything appended so far, or the next ``count`` batches, on every controller."""
        if self.quorum.log_end_offset > self.quorum.committed:
            batches: Committed = self.quorum.take_committed(count)
            for controller in self.controllers.values():
                controller.on_commit(batches)
        self.scheduler.run()

    def digests(self) -> set[str]:
        images = [controller.stable for controller in self.controllers.values()]
        return {digest_image(image).text for image in (*images, replayed(self.quorum.batches).stable)}


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_slices, "ROWS_PER_SLICE_MAX", 4_000)


SLICES = 3


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("durable", range(1, SLICES))
@pytest.mark.parametrize("successor", [1, 2])
async def test_leader_lost_in_a_transaction_leaves_no_trace_of_it(durable: int, successor: int) -> None:
    """The leader dies with some of a transaction's batches committed, and another, or itself again, is elected."""
    trio = Trio()
    trio.elect(1)
    trio.commit()
    (before,) = trio.digests()
    operation = lambda _: Decision([topic(n) for n in range(11_000)], None, is_internal=True)  # noqa: E731
    task = asyncio.create_task(trio.controllers[1].append_write_event("clean", operation))
    await asyncio.sleep(0)
    trio.scheduler.run()
    begun_at = len(trio.quorum.batches) - SLICES
    assert isinstance(records_in(trio.quorum.batches[begun_at:])[0], BeginTransactionRecord)
    trio.commit(durable)
    assert len(trio.quorum.batches) == begun_at + SLICES

    if successor == 1:
        trio.elect(3)
        # The one in between is gone before anything of it is committed.
    trio.elect(successor)
    with pytest.raises(OutcomeUnknown):
        await task
    assert len(trio.quorum.batches) == begun_at + durable + 1
    trio.commit()

    assert records_in(trio.quorum.batches[-1:]) == [ABORT]
    assert trio.digests() == {before}
    created = asyncio.create_task(trio.controllers[successor].append_write_event("create", writes(topic(5))))
    await asyncio.sleep(0)
    trio.scheduler.run()
    trio.commit()
    assert await created == "done"
    assert [list(c.stable.topics.by_name) for c in trio.controllers.values()] == [["topic-5"]] * 3
    assert len(trio.digests()) == 1
    assert trio.faults.seen == []


@pytest.mark.parametrize("interval_ms", [500.0, 0.0])
async def test_idle_log_gets_a_noop_at_each_interval_and_a_busy_one_none(interval_ms: float) -> None:
    trio = Trio(interval_ms)
    trio.elect(2)
    trio.commit()
    idle = len(trio.quorum.batches)

    for _ in range(4):
        task = asyncio.create_task(trio.controllers[2].append_write_event("write", writes(NO_OP)))
        await asyncio.sleep(0)
        trio.scheduler.advance(500)
        trio.commit()
        await task
    assert len(trio.quorum.batches) == idle + 4, "only what was asked for"
    for _ in range(4):
        trio.scheduler.advance(500)
        trio.commit()
    assert records_in(trio.quorum.batches[idle + 4 :]) == ([NoOpRecord()] * 4 if interval_ms else [])
    trio.elect(1)
    written = len(trio.quorum.batches)
    trio.scheduler.advance(500)
    assert len(trio.quorum.batches) == written, "the next leader looks first, and the last one writes no more"
    assert trio.faults.seen == []
