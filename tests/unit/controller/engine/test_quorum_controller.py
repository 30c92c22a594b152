"""The event loop of decisions: what is answered when, and what is left after a failure."""

from __future__ import annotations

import asyncio

import pytest

from quorate.controller.decisions import record_slices
from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import WriteContext
from quorate.metadata_log.batches.batch import iter_records, parse_header
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded, NotController, OutcomeUnknown, Overloaded
from quorate.metadata_log.records.records import BrokerRegistrationChangeRecord, ConfigRecord, VersionedRecord
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_limits
from tests.unit.controller.manual_quorum import Bench, refuse, started, topic, writes


@pytest.fixture
def bench() -> Bench:
    """An active controller whose activation has committed."""
    bench = Bench()
    bench.lead()
    bench.commit()
    return bench


def names(bench: Bench) -> set[str]:
    """Topics of the stable image."""
    return set(bench.controller.stable.topics.by_name)


async def test_write_reply_waits_for_its_commit(bench: Bench) -> None:
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    assert not task.done()
    assert names(bench) == set()
    bench.commit()
    assert await task == "done"
    assert names(bench) == {"topic-1"}


async def test_write_events_of_one_turn_share_a_batch_and_keep_their_own_order(bench: Bench) -> None:
    before = len(bench.quorum.batches)
    tasks = [asyncio.create_task(bench.controller.append_write_event("create", writes(topic(n)))) for n in range(5)]
    await bench.settle()
    assert len(bench.quorum.batches) == before + 1
    written = [record.record.name for record in iter_records(bench.quorum.batches[-1])]  # type: ignore[union-attr]
    assert written == [f"topic-{n}" for n in range(5)]
    bench.commit()
    assert await asyncio.gather(*tasks) == ["done"] * 5


async def test_decision_sees_what_is_not_committed_yet(bench: Bench) -> None:
    await_first = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    seen: list[set[str]] = []

    def look(context: WriteContext) -> Decision[str]:
        seen.append(set(context.image.topics.by_name))
        return Decision((), "exists")

    reader = await started(bench, bench.controller.append_write_event("look", look))
    assert seen == [{"topic-1"}]
    # "It exists already" must not be said before what exists is durable.
    assert not reader.done()
    bench.commit()
    assert await reader == "exists"
    assert await await_first == "done"


async def test_refusal_changes_nothing_and_is_passed_on(bench: Bench) -> None:
    before = bench.quorum.log_end_offset
    task = await started(bench, bench.controller.append_write_event("bad", refuse))
    with pytest.raises(ApiError, match="no"):
        await task
    assert bench.quorum.log_end_offset == before
    assert bench.controller.is_active
    assert bench.faults.seen == []


async def test_record_that_replay_cannot_take_never_reaches_the_log(bench: Bench) -> None:
    good = asyncio.create_task(bench.controller.append_write_event("good", writes(topic(1))))
    orphan = VersionedRecord(BrokerRegistrationChangeRecord(broker_id=99, broker_epoch=1, fenced=1), 0)
    bad = asyncio.create_task(bench.controller.append_write_event("bad", writes(topic(2), orphan)))
    other = asyncio.create_task(bench.controller.append_write_event("other", writes(topic(3))))
    await bench.settle()
    bench.commit()
    assert await good == "done"
    assert await other == "done"
    with pytest.raises(ApiError) as raised:
        await bad
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert names(bench) == {"topic-1", "topic-3"}
    assert bench.controller.is_active
    assert [what for what, _ in bench.faults.seen] == ["bad"]


async def test_text_that_no_record_can_hold_refuses_the_change_and_nothing_else(bench: Bench) -> None:
    """A string's length is an int16 in the log, and what a request adds up to may be longer than each of its parts."""
    long = VersionedRecord(ConfigRecord(2, "t", "name", "é" * 20_000), 0)
    first = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    task = await started(bench, bench.controller.append_write_event("configure", writes(topic(2), long)))
    bench.commit()
    with pytest.raises(ApiError, match="no record can hold it: a string of 40000 bytes") as refused:
        await task
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert (bench.controller.is_active, bench.faults.seen) == (True, [])
    assert await first == "done"
    assert names(bench) == {"topic-1"}


async def test_unknown_exception_in_a_decision_resigns(bench: Bench) -> None:
    def explode(_: WriteContext) -> Decision[None]:
        raise ZeroDivisionError

    waiting = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    task = await started(bench, bench.controller.append_write_event("explode", explode))
    with pytest.raises(ApiError) as raised:
        await task
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(OutcomeUnknown):
        await waiting
    assert not bench.controller.is_active
    assert bench.quorum.leader_id is None
    assert bench.role.story == ["activated", "renounced"]


async def test_lost_leadership_makes_waiting_outcomes_unknown_and_forgets_the_head(bench: Bench) -> None:
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.lose()
    with pytest.raises(OutcomeUnknown, match="read before repeating"):
        await task
    assert names(bench) == set()
    refused = await started(bench, bench.controller.append_write_event("create", writes(topic(2))))
    with pytest.raises(NotController) as raised:
        await refused
    assert raised.value.leader_id == 2
    bench.lead()
    again = await started(bench, bench.controller.append_write_event("create", writes(topic(3))))
    bench.commit()
    assert await again == "done"
    assert names(bench) == {"topic-3"}


async def test_failed_append_resigns_and_leaves_no_reply_without_a_commit(bench: Bench) -> None:
    bench.quorum.fail_next_append = OSError("disk")
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    with pytest.raises(OutcomeUnknown):
        await task
    assert not bench.controller.is_active
    assert [what for what, _ in bench.faults.seen] == ["append"]


async def test_user_operation_over_the_record_limit_is_refused_whole(bench: Bench) -> None:
    before = bench.quorum.log_end_offset
    records = [topic(n) for n in range(10_001)]
    task = await started(bench, bench.controller.append_write_event("create", writes(*records)))
    with pytest.raises(LimitExceeded, match="10001 records"):
        await task
    assert bench.quorum.log_end_offset == before


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes are cut after 10,000 records, so that two slices need not be 100,000 records."""
    monkeypatch.setattr(record_slices, "ROWS_PER_SLICE_MAX", 10_000)


@pytest.mark.usefixtures("short_slices")
async def test_internal_atomic_operation_over_one_batch_is_a_transaction(bench: Bench) -> None:
    records = [topic(n) for n in range(12_000)]
    operation = lambda _: Decision(records, "cleaned", is_internal=True)  # noqa: E731
    before = len(bench.quorum.batches)
    task = await started(bench, bench.controller.append_write_event("clean", operation))
    batches = bench.quorum.batches[before:]
    assert len(batches) == 2
    assert sum(parse_header(b).record_count for b in batches) == 12_002
    bench.commit(1)
    assert names(bench) == set()
    assert not task.done()
    bench.commit()
    assert await task == "cleaned"
    assert len(names(bench)) == 12_000


@pytest.mark.usefixtures("short_slices")
async def test_transaction_cut_by_a_failover_leaves_nothing(bench: Bench) -> None:
    records = [topic(n) for n in range(12_000)]
    operation = lambda _: Decision(records, "cleaned", is_internal=True)  # noqa: E731
    task = await started(bench, bench.controller.append_write_event("clean", operation))
    bench.commit(1)
    bench.lose()
    with pytest.raises(OutcomeUnknown):
        await task
    assert names(bench) == set()


async def test_standby_replays_what_others_commit(bench: Bench) -> None:
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.commit()
    await task
    standby = Bench()
    standby.quorum.batches = bench.quorum.batches
    standby.commit()
    assert standby.controller.stable == bench.controller.stable
    assert not standby.controller.is_active


async def test_checkpoint_replaces_a_standbys_state(bench: Bench) -> None:
    task = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.commit()
    await task
    standby = Bench()
    standby.controller.on_snapshot(ReplayState(bench.controller.stable), bench.controller.applied_offset)
    assert standby.controller.stable == bench.controller.stable
    assert standby.controller.applied_offset == bench.controller.applied_offset


async def test_write_that_does_not_commit_in_time_is_an_unknown_outcome(bench: Bench) -> None:
    task = asyncio.create_task(bench.controller.append_write_event("create", writes(topic(1)), timeout_ms=1))
    await bench.settle()
    with pytest.raises(OutcomeUnknown, match="did not commit within 2 ms"):
        await task
    bench.commit()
    assert names(bench) == {"topic-1"}


async def test_too_many_uncommitted_bytes_refuse_before_anything_is_decided() -> None:
    bench = Bench(controller_limits(uncommitted_bytes_max=100))
    bench.lead()
    bench.commit()
    first = await started(bench, bench.controller.append_write_event("create", writes(topic(1), topic(2))))
    with pytest.raises(Overloaded):
        await bench.controller.append_write_event("create", writes(topic(3)))
    bench.commit()
    assert await first == "done"


async def test_activation_comes_before_what_waits_in_the_queue() -> None:
    bench = Bench()
    task = asyncio.create_task(bench.controller.append_write_event("create", writes(topic(1))))
    await asyncio.sleep(0)
    bench.lead()
    await bench.settle()
    bench.commit()
    assert await task == "done"
    first = next(iter(iter_records(bench.quorum.batches[0]))).record
    assert type(first).__name__ == "FeatureLevelRecord"


async def test_record_time_never_runs_backwards(bench: Bench) -> None:
    first = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.scheduler.wall_start_ms -= 60_000
    second = await started(bench, bench.controller.append_write_event("create", writes(topic(2))))
    bench.commit()
    await asyncio.gather(first, second)
    times = [parse_header(batch).timestamp for batch in bench.quorum.batches]
    assert times == sorted(times)


async def test_closed_controller_answers_what_waits(bench: Bench) -> None:
    waiting = await started(bench, bench.controller.append_write_event("create", writes(topic(1))))
    bench.controller.close()
    with pytest.raises(OutcomeUnknown):
        await waiting
    with pytest.raises(ApiError, match="shutting down"):
        await bench.controller.append_write_event("create", writes(topic(2)))
