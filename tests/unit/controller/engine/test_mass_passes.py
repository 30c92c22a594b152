"""Passes over more partitions than one turn of the loop takes: slices, each decided on the head of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.controller.brokers import fencing
from quorate.controller.brokers.fencing import decide_broker_heartbeat, decide_fence_stale_broker
from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.brokers.registration import decide_register_broker, decide_unregister_broker
from quorate.controller.decisions import record_slices
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.partitions import mass_changes
from quorate.controller.protocol import BrokerHeartbeatRequest, UnregisterBrokerRequest
from quorate.metadata_log.batches.batch import iter_records, parse_header
from quorate.metadata_log.batches.builder import encode_items, item_count
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import OutcomeUnknown
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table import page_access
from quorate.snapshots.table.pages import PAGE_ROWS, Page
from tests.unit.controller.manual_quorum import Bench
from tests.unit.controller.small_cluster import SmallCluster, registration

PARTITIONS = 250
ROWS_PER_SLICE = 100
TIMED_OUT_MS = 1e9


@pytest.fixture(autouse=True)
def cut_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the rows of a slice; they are few unless a test says otherwise."""

    def cut(rows: int) -> None:
        for module in (mass_changes, record_slices):
            monkeypatch.setattr(module, "ROWS_PER_SLICE_MAX", rows)

    cut(ROWS_PER_SLICE)
    return cut


def cluster_of(*replicas: int, count: int = PARTITIONS) -> SmallCluster:
    cluster = SmallCluster()
    cluster.create("t", *([*replicas[at % len(replicas) :], *replicas[: at % len(replicas)]] for at in range(count)))
    return cluster


def active(cluster: SmallCluster) -> Bench:
    """A controller that leads with this image as its stable state."""
    bench = Bench()
    bench.controller.on_snapshot(ReplayState(cluster.image), 0)
    bench.lead()
    return bench


def heartbeat(cluster: SmallCluster, heartbeats: BrokerHeartbeats, broker: int, **changes: Any) -> Any:
    """The operation of a heartbeat."""
    request = BrokerHeartbeatRequest(
        broker_id=broker, broker_epoch=cluster.epoch(broker), current_metadata_offset=10**6, **changes
    )
    return lambda context: decide_broker_heartbeat(context.image, cluster.config, heartbeats, request, context.now_ms)


def fence(cluster: SmallCluster) -> Any:
    return heartbeat(cluster, cluster.heartbeats, 0, want_fence=True)


def isr_rows(image: MetadataImage) -> int:
    return len(image.partitions.rows_with_isr(0))


def isolated(bench: Bench) -> bool:
    return bench.controller.stable.cluster.brokers[0].is_fenced


def counts(bench: Bench) -> list[int]:
    return [parse_header(batch).record_count for batch in bench.quorum.batches]


async def test_fencing_of_many_is_cut_into_batches_and_says_what_one_decision_says(
    cut_at: Callable[[int], None],
) -> None:
    cluster = cluster_of(0, 1, 2)
    bench = active(cluster)
    task = asyncio.create_task(bench.controller.append_write_event("heartbeat", fence(cluster)))
    await bench.settle()
    assert counts(bench) == [100, 100, 51]  # the last: 50 partitions and the broker
    last = list(iter_records(bench.quorum.batches[-1]))[-1].record
    assert isinstance(last, BrokerRegistrationChangeRecord)
    bench.commit(2)
    assert not task.done()
    bench.commit()
    assert (await task).is_fenced
    cut_at(10_000)
    cluster.heartbeat(0, want_fence=True)
    assert bench.controller.stable.partitions == cluster.image.partitions
    assert bench.controller.stable.cluster == cluster.image.cluster


def fencing_slices(cluster: SmallCluster) -> list[list[BatchItem]]:
    """What each slice writes, one decided on what the other left."""
    decision = fence(cluster)(WriteContext(cluster.image, 0, 0.0, None))
    state, written = ReplayState(cluster.image), []
    for part in decision.slices:
        items = [item for item in part(state.head) if item_count(item)]
        state = state.replay_items(items, state.end_offset, 1, 0)
        written.append(items)
    assert isr_rows(state.head) == 0
    return written


def encoded(slices: list[list[BatchItem]]) -> list[bytes]:
    return [encode_items(items, 0) for items in slices]


def test_slices_whose_rows_are_searched_in_turn_are_those_of_rows_that_were_found_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of(0, 1, 2)
    searched = encoded(fencing_slices(cluster))
    assert len(searched) == 3
    monkeypatch.setattr(fencing, "rows_in_isr", lambda table, broker: table.rows_with_isr(broker))
    assert encoded(fencing_slices(cluster)) == searched


def test_search_looks_no_further_than_the_slices_of_which_it_is_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Page] = []

    def has_in_set(page: Page, name: str, broker: int) -> NDArray[np.bool_]:
        looked.append(page)
        return page_access.has_in_set(page, name, broker)

    cluster = SmallCluster()
    for number in range(2):  # a page each
        cluster.create(f"t{number}", *([[0, 1]] * PAGE_ROWS))
    monkeypatch.setattr(mass_changes, "has_in_set", has_in_set)
    decision = fence(cluster)(WriteContext(cluster.image, 0, 0.0, None))
    assert looked == []
    decision.slices[0](cluster.image)
    assert looked == list(cluster.image.partitions.pages[:1])


def test_broker_in_no_isr_is_fenced_without_a_look_at_any_page(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(1, 2)
    looked: list[Page] = []
    monkeypatch.setattr(page_access, "has_in_set", lambda page, name, broker: looked.append(page))
    decision = fence(cluster)(WriteContext(cluster.image, 0, 0.0, None))
    assert [type(item.record) for item in decision.records] == [BrokerRegistrationChangeRecord]
    assert looked == []


def test_last_slice_takes_all_that_is_left_whatever_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of(0, 1, 2)
    table = cluster.image.partitions
    monkeypatch.setattr(fencing, "rows_in_isr", lambda table, broker: mass_changes.RowSearch(table, broker, 150))
    sizes = [sum(map(item_count, items)) for items in fencing_slices(cluster)]
    assert sizes == [100, len(table.rows_with_isr(0)) - 100 + 1]


async def test_nothing_is_decided_between_two_slices_though_the_loop_turns() -> None:
    cluster = cluster_of(0, 1, 2)
    bench = active(cluster)
    seen: list[int] = []

    def look(context: WriteContext) -> Decision[None]:
        seen.append(isr_rows(context.image))
        return Decision((), None)

    first = asyncio.create_task(bench.controller.append_write_event("heartbeat", fence(cluster)))
    second = asyncio.create_task(bench.controller.append_write_event("look", look))
    await asyncio.sleep(0)
    appended = []
    while not seen:
        bench.scheduler.run_turn()
        appended.append(len(bench.quorum.batches))
    assert seen == [0]
    assert appended[:3] == [1, 2, 3]
    bench.commit()
    await asyncio.gather(first, second)


def are_settled(bench: Bench) -> list[bool]:
    return [bench.controller.settled(broker) is not None for broker in (0, 1)]


async def test_broker_of_a_pass_is_settled_once_it_is_committed_and_the_others_all_the_while() -> None:
    cluster = cluster_of(0, 1, 2)
    bench = active(cluster)
    await bench.settle()
    assert are_settled(bench) == [True, True]

    task = asyncio.create_task(bench.controller.append_write_event("heartbeat", fence(cluster)))
    await asyncio.sleep(0)
    while len(bench.quorum.batches) < len(range(0, PARTITIONS, ROWS_PER_SLICE)):
        bench.scheduler.run_turn()
        assert are_settled(bench) == [False, True]
    await bench.settle()
    assert are_settled(bench) == [False, True]

    bench.commit()
    await task
    assert are_settled(bench) == [True, True]


async def test_nobody_is_settled_amid_a_pass_that_may_change_any_broker() -> None:
    bench = active(cluster_of(0, 1, 2))
    await bench.settle()

    def nothing_much(context: WriteContext) -> Decision[None]:
        slices = [lambda image: (), lambda image: ()]
        return Decision((), None, is_atomic=False, is_internal=True, slices=slices)

    task = asyncio.create_task(bench.controller.append_write_event("look", nothing_much))
    await asyncio.sleep(0)
    bench.scheduler.run_turn()
    assert are_settled(bench) == [False, False]

    await bench.settle()
    bench.commit()
    await task
    assert are_settled(bench) == [True, True]


async def test_pass_cut_by_a_failover_is_finished_by_the_next_leader() -> None:
    cluster = cluster_of(0, 1, 2)
    bench = active(cluster)
    task = asyncio.create_task(bench.controller.append_write_event("heartbeat", fence(cluster)))
    await bench.settle()
    bench.commit(1)
    bench.lose()
    with pytest.raises(OutcomeUnknown):
        await task
    assert isr_rows(bench.controller.stable) == 150
    assert not bench.controller.stable.cluster.brokers[0].is_fenced
    bench.lead()
    sessions = BrokerHeartbeats.of_image(bench.controller.stable, 9_000.0, 0.0)
    again = asyncio.create_task(
        bench.controller.append_write_event(
            "fence",
            lambda context: decide_fence_stale_broker(context.image, cluster.config, sessions, TIMED_OUT_MS),
        )
    )
    await bench.settle()
    bench.commit()
    session = await again
    assert session is not None
    assert session.broker_id == 0
    assert isr_rows(bench.controller.stable) == 0
    assert bench.controller.stable.cluster.brokers[0].is_fenced


async def test_leadership_lost_between_two_slices_writes_no_more() -> None:
    cluster = cluster_of(0, 1, 2)
    bench = active(cluster)
    task = asyncio.create_task(bench.controller.append_write_event("heartbeat", fence(cluster)))
    await asyncio.sleep(0)
    bench.scheduler.run_turn()
    assert counts(bench) == [100]
    bench.commit(1)
    bench.lose()
    assert counts(bench) == [100]
    with pytest.raises(OutcomeUnknown):
        await task


async def test_return_of_a_broker_to_many_takes_effect_at_once_or_not_at_all(cut_at: Callable[[int], None]) -> None:
    cluster = cluster_of(0)
    cut_at(10_000)
    cluster.heartbeat(0, want_fence=True)
    cut_at(ROWS_PER_SLICE)
    assert len(cluster.image.partitions.rows_without_leader()) == PARTITIONS
    bench = active(cluster)
    task = asyncio.create_task(
        bench.controller.append_write_event("heartbeat", heartbeat(cluster, cluster.heartbeats, 0))
    )
    await bench.settle()
    assert counts(bench) == [102, 100, 51]  # begin, the broker and 100 partitions; 100; 50 and end
    bench.commit(2)
    assert isolated(bench)
    bench.commit()
    await task
    assert not isolated(bench)
    assert not len(bench.controller.stable.partitions.rows_without_leader())


@pytest.mark.parametrize(("level", "has_transaction"), [(7, False), (12, False), (13, True), (30, True)])
@pytest.mark.parametrize("operation", ["register", "unregister"])
async def test_transaction_is_written_where_the_level_knows_it(
    level: int, has_transaction: bool, operation: str
) -> None:
    cluster = cluster_of(0, 1, 2)
    cluster.write(FeatureLevelRecord("metadata.version", level))
    bench = active(cluster)
    heartbeats = BrokerHeartbeats(cluster.config.session_timeout_ms)

    def decide(context: WriteContext) -> Decision[Any]:
        if operation == "unregister":
            return decide_unregister_broker(context.image, cluster.config, UnregisterBrokerRequest(broker_id=0))
        request = registration(0, incarnation=1)
        return decide_register_broker(context.image, cluster.config, heartbeats, request, context.next_offset, 1e6)

    task = asyncio.create_task(bench.controller.append_write_event(operation, decide))
    await bench.settle()
    written = [type(logged.record) for batch in bench.quorum.batches for logged in iter_records(batch)]
    assert written.count(PartitionChangeRecord) == PARTITIONS
    assert [written.count(BeginTransactionRecord), written.count(EndTransactionRecord)] == [has_transaction] * 2
    bench.commit(len(bench.quorum.batches))
    await task
    broker = bench.controller.stable.cluster.brokers.get(0)
    assert (broker is None) == (operation == "unregister")


async def test_new_incarnation_of_a_broker_in_many_isrs_registers_atomically() -> None:
    cluster = cluster_of(0, 1, 2)
    cluster.now_ms = 9_001.0
    cluster.register(registration(0, incarnation=1))
    broker = cluster.image.cluster.brokers[0]
    assert broker.is_fenced
    assert isr_rows(cluster.image) == 0
    assert len(cluster.image.partitions) == PARTITIONS
