"""The last part of a log as events, those of `quorate timeline`, and the spans of time between them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from quorate.controller.api.answers.timeline_models import LaneSpanReply, TimelineEventReply, TimelineReply
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.reads.answer_turns import Check
from quorate.controller.reads.past import PastStretch, StretchSize
from quorate.metadata_log.batches.batch import BatchHeader, parse_header
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.incidents.reading.log_versions import read_versions
from quorate.snapshots.incidents.serial.search import search
from quorate.snapshots.incidents.telling.lanes import LaneSpan, lane_spans
from quorate.snapshots.incidents.telling.timeline import TimelineEvent, timeline, whole_from
from quorate.snapshots.incidents.thresholds import Thresholds

#: Of the log that one answer is made of: less than a second of a core where every record is about a partition.
STRETCH_MAX: Final = StretchSize(bytes_max=4 * 1024 * 1024, records_max=12_500)
#: Of the partitions that are not well where it begins those that one answer looks at: a quarter of a second of a core.
UNWELL_MAX: Final = 5_000


class TimelineNode(NamedTuple):
    """The facts about the node that tells."""

    cluster_id: str
    config: ControllerConfig
    #: Its clock, milliseconds since 1970; None: files tell.
    now_ms: int | None
    #: Whether somebody leads, as far as it knows. The log tells only that nobody else was elected since.
    is_led: bool


def told_timeline(
    stretch: PastStretch, about: TimelineNode, before: int | None, limit: int, check: Check
) -> TimelineReply:
    """The last events and spans of a stretch, told as if the log ended before an offset.

    Args:
        limit: of events, but for those of the first one's offset, and begins of what began before it, too.

    Raises:
        ReplayError: a record cannot be replayed. TooManyVersions: more changes of partitions than are held. What
            ``check`` raises.
    """
    walk = _Walk(before)
    versions = read_versions(stretch.start, walk.batches(stretch), about.cluster_id, UNWELL_MAX, before, check)
    # Of the cluster, not of the stretch: a topic's own value is in the log.
    thresholds = Thresholds(min_isr=min_insync_replicas(EMPTY_IMAGE, about.config, ""))
    found = search(versions, thresholds, check=check)
    begin, end = stretch.start.end_offset, walk.end_offset(stretch)
    events = timeline(found, thresholds, begin, check)
    first, shown = begin, events
    # The rest is asked for by offset: all of one offset is told, what begins from it on, and what is told as one.
    cut_at = whole_from(found, thresholds, events[-limit].offset) if len(events) > limit else begin
    is_cut = bool(events) and cut_at > events[0].offset
    if is_cut:
        first = cut_at
        shown = timeline(found, thresholds, first, check)
    begin_ms = _ms(shown[0]) if is_cut else walk.begin_ms
    spans = lane_spans(versions, found, thresholds, check)
    if not about.is_led:
        spans = [_ended_with_log(span, walk.end_ms) for span in spans]
    return TimelineReply(
        begin_offset=first,
        begin_ms=begin_ms,
        end_offset=end,
        end_ms=walk.end_ms,
        now_ms=about.now_ms,
        left_out=versions.left_out,
        earlier=first if is_cut or stretch.has_earlier else None,
        events=[_event_reply(event) for event in shown],
        spans=[
            LaneSpanReply.model_construct(**span._asdict())
            for span in _last_of_lanes(spans, limit)
            if begin_ms is not None and (span.to_ms is None or span.to_ms >= begin_ms)
        ],
    )


def _ended_with_log(span: LaneSpan, end_ms: int | None) -> LaneSpan:
    """The last leader led until its last record at least, and leads no more."""
    return span._replace(to_ms=end_ms) if span.lane == "epoch" and span.to_ms is None else span


class _Walk:
    """Goes through the batches of a stretch that begin before an offset, and notes what it saw."""

    def __init__(self, before: int | None) -> None:
        self._before = before
        self._last: BatchHeader | None = None
        self.begin_ms: int | None = None

    def batches(self, stretch: PastStretch) -> Iterator[Buffer]:
        for batch in stretch.batches():
            header = parse_header(batch)
            if self._before is not None and header.base_offset >= self._before:
                return
            self.begin_ms = header.timestamp if self.begin_ms is None else self.begin_ms
            self._last = header
            yield batch

    @property
    def end_ms(self) -> int | None:
        return None if self._last is None else self._last.timestamp

    def end_offset(self, stretch: PastStretch) -> int:
        end = stretch.start.end_offset if self._last is None else self._last.end_offset
        return end if self._before is None else min(end, self._before)


def _last_of_lanes(spans: Sequence[LaneSpan], limit: int) -> list[LaneSpan]:
    """Of each lane the last spans, so many at most; by their begin."""
    lanes: defaultdict[str, list[LaneSpan]] = defaultdict(list)
    for span in spans:
        lanes[span.lane].append(span)
    kept = {id(span) for mine in lanes.values() for span in mine[-limit:]}
    return [span for span in spans if id(span) in kept]


def _event_reply(event: TimelineEvent) -> TimelineEventReply:
    told = {**event._asdict(), "time_ms": _ms(event), "brokers": list(event.brokers)}
    del told["time"]
    return TimelineEventReply.model_construct(**told)


def _ms(event: TimelineEvent) -> int:
    return round(event.time.timestamp() * 1000)
