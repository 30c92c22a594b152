"""Answers to operators' questions, and what they are asked with: `/v1/answers/...`. See docs/answers.md."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.api.answers.stop_models import ANSWER_FORM, NAMED_MAX, CanStopReason, QuorumMargin
from quorate.controller.api.models import HttpModel, PastViewParameters
from quorate.controller.protocol.partitions import ReassignableTopic
from quorate.controller.protocol.types import ITEMS_MAX, BrokerIdField, Text, UuidField

StopManner = Literal["shutdown", "crash"]
WhatIfEvent = Literal["stop", "crash", "start", "lose-directory", "reassign", "catch-up"]

#: Nodes that one question may be about.
NODES_MAX: Final = 1_000
#: Events that one question may be about.
STEPS_MAX: Final = 100
#: Kafka's ids of nodes are int32.
ID_MAX: Final = 2**31 - 1
_IDS_FORM: Final = r"^[0-9]{1,10}(,[0-9]{1,10})*$"


def node_ids(text: str) -> list[int]:
    """``11,12`` taken apart, each once, in the order given.

    Raises:
        ValueError: names the rule that is broken.
    """
    if not text:
        return []
    if not re.fullmatch(_IDS_FORM, text):
        raise ValueError(f"{text[:40]!r} is no list of ids with commas between them, as 11,12")
    ids = list(dict.fromkeys(map(int, text.split(","))))
    if len(ids) > NODES_MAX:
        raise ValueError(f"{len(ids)} ids: {NODES_MAX} is the most")
    if max(ids) > ID_MAX:
        raise ValueError(f"{max(ids)} is no id: {ID_MAX} is the greatest")
    return ids


class CanStopParameters(PastViewParameters):
    """The nodes that are to be stopped: some of the brokers, or some of the controllers."""

    brokers: str = Field(default="", max_length=11 * NODES_MAX)
    """Ids of brokers, separated by commas, in the order in which they are stopped."""
    controllers: str = Field(default="", max_length=11 * NODES_MAX)
    """Ids of controllers, separated by commas. One question is about brokers or about controllers."""
    manner: StopManner = "shutdown"
    """`shutdown`: each in order, as with SIGTERM; `crash`: all at once, without a word. Controllers: no difference."""
    limit: int = Field(default=100, ge=0, le=NAMED_MAX)
    """Most partitions that each reason names; counts are of all."""

    @field_validator("brokers", "controllers")
    @classmethod
    def _has_ids(cls, text: str) -> str:
        node_ids(text)
        return text


class CanStopReply(HttpModel):
    """Whether they may be stopped."""

    form: int = ANSWER_FORM
    state_offset: int
    """Offset of the state that it was answered from."""
    state_time_ms: int
    """When the last record of that state was written, in milliseconds since 1970."""
    manner: StopManner
    brokers: list[int]
    fenced: list[int]
    """Those of the brokers that are fenced already: stopping them changes nothing."""
    controllers: list[int]
    may_stop: bool
    """Whether no client would notice: there is no reason against it."""
    reasons: list[CanStopReason]
    """The gravest first."""
    quorum: QuorumMargin | None
    """Of controllers only."""


class WhatIfStep(HttpModel):
    """One event, with what it happens to: only the lists that it is about have anything in them."""

    event: WhatIfEvent
    """`stop`: brokers are shut down in order, one after the other; `crash`: brokers are silent, all at once; `start`:
    brokers that are down come back, one after the other; `lose-directory`: log directories fail; `reassign`:
    reassignments are started or cancelled; `catch-up`: every replica that runs is in sync."""
    brokers: Annotated[list[BrokerIdField], Field(max_length=NODES_MAX)] = Field(default_factory=list)
    """With `stop`, `crash` and `start`."""
    racks: Annotated[list[Text], Field(max_length=NODES_MAX)] = Field(default_factory=list)
    """With the same: all brokers of these racks, by id, behind those that are named."""
    directories: Annotated[list[UuidField], Field(max_length=NODES_MAX)] = Field(default_factory=list)
    """With `lose-directory`."""
    topics: Annotated[list[ReassignableTopic], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    """With `reassign`: as in `POST /v1/partition-reassignments`."""


class WhatIfRequest(HttpModel):
    """Events, in their order."""

    steps: Annotated[list[WhatIfStep], Field(max_length=STEPS_MAX)]


class WhatIfReply(HttpModel):
    """The cluster before and after. What a state does not hold is as in an old one: the quorum, and who was heard."""

    form: int = ANSWER_FORM
    state_offset: int
    """Offset of the state that it was answered from."""
    state_time_ms: int
    """When the last record of that state was written, in milliseconds since 1970."""
    before: StatusReply
    after: StatusReply
    """`elections` are those of the events."""
    quorum_reasons: list[CanStopReason] = Field(default_factory=list)
    """Why none of it can happen now: nobody decides. Both statuses are those with an active controller."""
