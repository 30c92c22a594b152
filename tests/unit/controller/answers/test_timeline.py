"""The timeline as an answer, of a log that Kafka wrote (static/timeline.json): 14 and 13 got SIGKILL, 12 SIGTERM."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from typer.testing import CliRunner

from quorate.controller.answers import timeline
from quorate.controller.answers.timeline import TimelineNode, told_timeline
from quorate.controller.api.answers.timeline_models import EVENTS_MAX, TimelineReply
from quorate.controller.reads.past import PastStretch
from quorate.metadata_log.batches.batch import CRC_START, parse_header
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records import records as r
from quorate.scripts.cli.__main__ import make_app
from quorate.snapshots.checkpoints.loading import batches_from_start, load_image
from quorate.snapshots.checkpoints.stretches import stretches_of
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_config
from tests.guards.patching import patching
from tests.pipeline_logs import KAFKA, TIME, LogWriter

LOG = KAFKA / "static" / "m3" / "log"
ABOUT = TimelineNode("c", controller_config(node_id=1, cluster_id="c"), None, is_led=True)


def stretch_of(path: Path) -> PastStretch:
    return PastStretch(ReplayState(), [batch.data for batch in batches_from_start(path)[1]], has_earlier=False)


def told(stretch: PastStretch, before: int | None = None, limit: int = EVENTS_MAX) -> TimelineReply:
    return told_timeline(stretch, ABOUT, before, limit, lambda: None)


@pytest.fixture(scope="module")
def whole() -> TimelineReply:
    return told(stretch_of(LOG))


def spans(reply: TimelineReply, lane: str) -> list[tuple[Any, ...]]:
    return [
        (span.node, span.partitions, span.from_offset, None if span.to_ms is None else span.to_ms - span.from_ms)
        for span in reply.spans
        if span.lane == lane
    ]


def test_events_are_those_of_the_command(whole: TimelineReply) -> None:
    words = ["timeline", "--json", "--from", str(LOG)]
    lines = CliRunner().invoke(make_app(words), words).stdout.splitlines()
    wanted = [(one["offset"], one["kind"], one["text"]) for one in map(json.loads, lines)]
    assert [(event.offset, event.kind, event.text) for event in whole.events] == wanted
    assert (whole.begin_offset, whole.end_offset, whole.earlier) == (0, 18994, None)


def test_spans_say_from_when_to_when(whole: TimelineReply) -> None:
    assert [(node, offset, ms is None) for node, _, offset, ms in spans(whole, "epoch")] == [
        (1, 0, False), (3, 17539, True),
    ]  # fmt: skip
    away = [(node, offset) for node, _, offset, _ in spans(whole, "broker") if offset > 5000]
    assert away == [(14, 5385), (13, 10992), (15, 17574), (15, 17578), (12, 17580)]
    assert [row[1:] for row in spans(whole, "offline")] == [(1, 5032, 35_226), (777, 9468, 29_495), (4, 10502, 19_302)]
    assert [row[1:3] for row in spans(whole, "reassignment")] == [(4, 9443)]


@pytest.mark.parametrize("clock_ms", [2**62, -(2**62), 253_402_300_800_000])
def test_clock_that_no_calendar_reaches_costs_nobody_the_answer(whole: TimelineReply, clock_ms: int) -> None:
    stretch = stretch_of(LOG)
    batches = [bytearray(batch) for batch in stretch.batches()]
    for batch in batches[len(batches) // 2 :]:
        struct.pack_into(">qq", batch, 27, clock_ms, clock_ms)  # first and last time
        struct.pack_into(">I", batch, CRC_START - 4, crc32c(batch[CRC_START:]))
    reply = told(stretch._replace(pieces=[bytes(batch) for batch in batches]))
    assert [event.offset for event in reply.events if event.kind == "broker_fenced"] == [5385, 10992, 17578]
    assert reply.end_offset == whole.end_offset


def test_where_nobody_leads_the_last_epoch_ends_with_the_log_and_those_before_as_they_did(whole: TimelineReply) -> None:
    leaderless = told_timeline(stretch_of(LOG), ABOUT._replace(is_led=False), None, EVENTS_MAX, lambda: None)
    (first, _), (ended_first, ended_last) = spans(whole, "epoch"), spans(leaderless, "epoch")
    assert ended_first == first
    last = next(span for span in leaderless.spans if span.lane == "epoch" and span.node == ended_last[0])
    assert last.to_ms == leaderless.end_ms


def test_what_lasts_has_no_end_where_the_story_ends_before_it() -> None:
    reply = told(stretch_of(LOG), before=9000)
    assert spans(reply, "offline") == [(None, 1, 5032, None)]
    assert reply.end_offset == 9000
    assert max(event.offset for event in reply.events) < 9000


def test_more_events_than_are_wanted_are_told_in_parts_that_meet(whole: TimelineReply) -> None:
    stretch, before = stretch_of(LOG), None
    parts: list[TimelineReply] = []
    while True:
        part = told(stretch, before, limit=7)
        parts.insert(0, part)
        if part.earlier is None:
            break
        assert len(part.events) >= 7
        assert part.earlier == part.events[0].offset
        before = part.earlier
    assert len(parts) > 3
    offsets = [event.offset for part in parts for event in part.events]
    assert offsets == sorted(offsets)
    # What is told together is told of the part of it that had happened by then.
    sharp = [(event.offset, event.kind) for event in whole.events if event.brokers and "_ends" not in event.kind]
    assert {(event.offset, event.kind) for part in parts for event in part.events} >= set(sharp)


def test_stretch_that_begins_with_a_state_tells_of_nothing_before_it() -> None:
    newest = next(stretches_of(LOG))
    reply = told(PastStretch(newest.start, [bytes(one) for one in newest.batches], has_earlier=True))
    assert reply.earlier == reply.begin_offset == newest.start.end_offset
    assert min(event.offset for event in reply.events) >= reply.begin_offset
    lasting = [span for span in reply.spans if span.from_offset < reply.begin_offset]
    assert {(span.lane, span.node) for span in lasting} >= {("under_min_isr", None)}


def test_nobody_waits_longer_than_he_said() -> None:
    def check() -> None:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "enough")

    with pytest.raises(ApiError, match="enough"):
        told_timeline(stretch_of(LOG), ABOUT, None, 1, check)


def test_of_many_partitions_in_trouble_some_are_told_of_when_something_becomes_of_them() -> None:
    """The crash of 13 left 781 without a leader; all of them are led again behind the start."""
    stretch = behind(12_000)
    whole = told(stretch)
    with patching() as patch:
        patch.setattr(timeline, "UNWELL_MAX", 100)
        some = told(stretch)
    assert (whole.left_out, some.left_out) == (0, 2181)
    led = [sum(event.partitions for event in one.events if event.kind == "offline_ends") for one in (whole, some)]
    assert led == [782, 782]


def behind(offset: int) -> PastStretch:
    """What the log has behind a state."""
    pieces = [bytes(batch.data) for batch in batches_from_start(LOG)[1] if batch.header.base_offset >= offset]
    start = ReplayState(load_image(LOG, parse_header(pieces[0]).base_offset))
    return PastStretch(start, pieces, has_earlier=True)


T = b"\x07" * 16


@pytest.fixture
def episodes(tmp_path: Path) -> LogWriter:
    """Twice, a day apart, a leader takes its follower out of the ISR, and in again: of one partition, then of others.

    The others follow each other by a second, as do, between and behind them, events of broker 3.
    """
    log = LogWriter(tmp_path / "log")
    brokers = [r.RegisterBrokerRecord(n, incarnation_id=bytes([n]) * 16, broker_epoch=n) for n in (1, 2, 3)]
    partitions = [r.PartitionRecord(n, T, (1, 2), (1, 2), leader=1) for n in range(10)]
    log.append([*brokers, r.TopicRecord("t", T), r.ConfigRecord(2, "t", "min.insync.replicas", "2"), *partitions])
    log.append([r.PartitionChangeRecord(0, T, isr=(1,))])
    log.append([r.PartitionChangeRecord(0, T, isr=(1, 2))])
    log.offset += 86_400
    for number in range(1, 10):
        log.append([r.PartitionChangeRecord(number, T, isr=(1,))])
        log.append([r.FenceBrokerRecord(3, 3)])
        log.append([r.UnfenceBrokerRecord(3, 3)])
    log.offset += 86_400
    log.append([r.PartitionChangeRecord(number, T, isr=(1, 2)) for number in range(1, 10)])
    return log


def of_log(log: LogWriter) -> PastStretch:
    return PastStretch(ReplayState(), [log.segment.read_bytes()], has_earlier=False)


def test_what_has_one_cause_and_began_at_another_time_is_told_by_itself(episodes: LogWriter) -> None:
    reply = told(of_log(episodes))
    runs = [(event.kind, event.partitions) for event in reply.events if "under_min_isr" in event.kind]
    begun, ended = "under_min_isr_begins", "under_min_isr_ends"
    assert runs == [(begun, 1), (ended, 1), (begun, 9), (ended, 9)]
    lane = [span for span in reply.spans if span.lane == "under_min_isr"]
    assert [(span.partitions, (span.to_ms or 0) > TIME + 86_400_000) for span in lane] == [(1, False), (9, True)]


@pytest.mark.parametrize("limit", [3, 5, 8, 12])
def test_begins_that_are_cut_off_are_told_in_both_parts(episodes: LogWriter, limit: int) -> None:
    before, begun = None, 0
    while True:
        part = told(of_log(episodes), before, limit)
        assert part.events
        begun += sum(event.partitions for event in part.events if event.kind == "under_min_isr_begins")
        if part.earlier is None:
            break
        before = part.earlier
    assert begun == 10


@pytest.fixture
def reassignments(tmp_path: Path) -> LogWriter:
    """Ten partitions that are moved, nine seconds after each other, none of them to an end."""
    log = LogWriter(tmp_path / "log")
    log.append([r.TopicRecord("t", T), *(r.PartitionRecord(n, T, (1, 2), (1, 2), leader=1) for n in range(10))])
    for number in range(10):
        log.offset += 8
        log.append([r.PartitionChangeRecord(number, T, replicas=(1, 2, 3), adding_replicas=(3,))])
    return log


def test_what_begins_in_a_part_is_told_in_it_also_where_others_began_shortly_before(reassignments: LogWriter) -> None:
    batches, start = list(of_log(reassignments).batches()), ReplayState()
    for batch in batches[:3]:
        start = start.replay_batch(batch)
    earlier = PastStretch(ReplayState(), batches[:3], has_earlier=False)
    parts = told(earlier), told(PastStretch(start, batches[3:], has_earlier=True))
    begun = [[event.partitions for event in part.events if event.kind == "reassignment_begins"] for part in parts]
    assert begun == [[2], [8]]


def test_nothing_is_told_of_what_one_batch_holds_behind_the_end(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log")
    brokers = [r.RegisterBrokerRecord(n, incarnation_id=bytes([n]) * 16, broker_epoch=n) for n in (1, 2, 3)]
    partitions = [r.PartitionRecord(n, T, (1, 2), (1, 2), leader=1) for n in range(2)]
    log.append([*brokers, r.TopicRecord("t", T), r.ConfigRecord(2, "t", "min.insync.replicas", "2"), *partitions])
    shrinks = [r.PartitionChangeRecord(n, T, isr=(1,)) for n in range(2)]
    base = log.append([shrinks[0], r.FenceBrokerRecord(3, 3), shrinks[1]])
    reply = told(of_log(log), before=base + 1)
    assert [(event.offset, event.partitions) for event in reply.events if "min_isr" in event.kind] == [(base, 1)]
    assert [span.partitions for span in reply.spans if span.lane == "under_min_isr"] == [1]
    assert max(span.from_offset for span in reply.spans) <= base
    assert reply.end_offset == base + 1


@pytest.mark.parametrize("step", ["read_versions", "search", "timeline", "lane_spans"])
def test_somebody_may_give_up_in_each_step_of_an_answer(episodes: LogWriter, step: str) -> None:
    """Few records may have much to be told of them."""
    checks, within, whole = 0, 0, getattr(timeline, step)

    def count() -> None:
        nonlocal checks
        checks += 1

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal within
        before = checks
        result = whole(*arguments, **named)
        within += checks - before
        return result

    with patching() as patch:
        patch.setattr(timeline, step, counted)
        told_timeline(of_log(episodes), ABOUT, None, EVENTS_MAX, count)
    assert within >= 10
