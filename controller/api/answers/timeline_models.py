"""The events of a log, and from when to when something was so: `/v1/answers/timeline`. See docs/page.md."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quorate.controller.api.models import HttpModel, OffsetField

EVENTS_MAX = 1_000


class TimelineParameters(HttpModel):
    """The part of the history that is wanted."""

    before: OffsetField | None = None
    """Only what lies before this offset, told as if the log ended there; without it all that is committed."""
    limit: int = Field(default=200, ge=1, le=EVENTS_MAX)
    """Most events of an answer, the last ones; and most spans of each lane."""


class TimelineEventReply(HttpModel):
    """Something that began, ended, or had no length."""

    offset: int
    """Of its record."""
    time_ms: int
    """Milliseconds since 1970."""
    kind: str
    """A word that programs may compare, as `quorate timeline --json` has it."""
    brokers: list[int]
    """The brokers that it is about."""
    partitions: int
    """How many it concerned; 0: it is not about partitions."""
    lasted_ms: int | None
    """Of an end the time since the begin, of several partitions the longest."""
    text: str
    """A sentence for people."""


class LaneSpanReply(HttpModel):
    """Something that was so for a while."""

    lane: Literal["epoch", "broker", "offline", "under_min_isr", "reassignment"]
    """`epoch`: a controller led; `broker`: it was fenced or shutting down; `offline`: partitions had no leader;
    `under_min_isr`: they had fewer replicas in sync than they must; `reassignment`: they were moved."""
    from_offset: int
    """The record with which it began."""
    from_ms: int
    """Milliseconds since 1970; of what was so before, when the history begins."""
    to_ms: int | None
    """null: it lasts to the end of the history."""
    node: int | None
    """The broker that was away, or the controller that led."""
    partitions: int
    """How many it concerned; 0: it is not about partitions."""
    text: str
    """A sentence for people."""


class TimelineReply(HttpModel):
    """The last part of a history."""

    begin_offset: int
    """The first record that is told of."""
    begin_ms: int | None
    """Its time, milliseconds since 1970; null: there is no record."""
    end_offset: int
    """(Exclusive) end of what is told of."""
    end_ms: int | None
    """Time of the last record, milliseconds since 1970."""
    now_ms: int | None
    """The clock of the node that tells, milliseconds since 1970: so far nothing else has happened. null: files tell."""
    earlier: int | None
    """What to ask `before` to be told what was before this part; null: this node reaches no further back."""
    left_out: int
    """Partitions that were not well when this part began and that are told of from the first record about them on: more
    than one answer looks at."""
    events: list[TimelineEventReply]
    """In the order of the log."""
    spans: list[LaneSpanReply]
    """By their begin; what lasts on from before this part begins with it."""
