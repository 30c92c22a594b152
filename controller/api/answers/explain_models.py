"""Answers to the question what is wrong: `/v1/answers/explain`, and a part of `/v1/status`. See docs/answers.md."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from quorate.controller.api.answers.stop_models import (
    ANSWER_FORM,
    NAMED_MAX,
    AnsweredPartitions,
    CanStopReason,
    QuorumMargin,
)
from quorate.controller.api.models import HttpModel, PastViewParameters
from quorate.controller.api.resources import ElectionsReply, VoterReply
from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

SymptomCode = Literal[
    "PARTITIONS_OFFLINE",
    "PARTITIONS_UNDER_MIN_ISR",
    "PARTITIONS_UNDER_REPLICATED",
    "REASSIGNMENTS_OPEN",
    "NO_ACTIVE_CONTROLLER",
    "CONTROLLERS_UNREACHABLE",
    "CONTROLLERS_NOT_VOTING",
    "CONTROLLER_LAGS",
]
CauseCode = Literal["BROKER_DOWN", "BROKER_LEAVING", "BROKER_UNKNOWN", "DIRECTORY_OFFLINE", "NOT_CAUGHT_UP"]
RemedyCode = Literal[
    "START_BROKER",
    "WAIT",
    "RESTORE_DIRECTORY",
    "REASSIGN",
    "ELECT_UNCLEANLY",
    "CANCEL_REASSIGNMENT",
    "START_CONTROLLER",
    "REJOIN_CONTROLLER",
    "RECOVER_QUORUM",
]
RiskCode = Literal["NONE", "LAST_KNOWN_LEADER", "UNCLEAN"]
ReassignmentProgress = Literal["COPYING", "STALLED", "ENDING"]


class ExplainParameters(PastViewParameters):
    """The subject of an explanation; without any of it the whole cluster."""

    topic: str = Field(default="", min_length=1, max_length=TOPIC_NAME_CHARS_MAX)
    """Only the partitions of this topic."""
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only this one of them."""
    broker: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only partitions with a replica on this broker."""
    controller: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """This controller, and no partition."""
    limit: int = Field(default=20, ge=0, le=NAMED_MAX)
    """Most partitions that each symptom names; counts are of all."""

    @model_validator(mode="after")
    def _is_one_subject(self) -> Self:
        if self.partition is not None and not self.topic:
            raise ValueError("`partition` is a number in a topic: name the `topic`, too")
        named = [name for name in ("topic", "broker", "controller") if getattr(self, name) not in ("", None)]
        if len(named) > 1:
            raise ValueError(f"`{named[0]}` and `{named[1]}` exclude each other")
        return self


class ExplainedCause(HttpModel):
    """One broker, and why its replicas are missing."""

    code: CauseCode
    """Stable. `BROKER_DOWN`: fenced; `BROKER_LEAVING`: in controlled shutdown; `BROKER_UNKNOWN`: not registered;
    `DIRECTORY_OFFLINE`: it runs, and the log directory of the replica is not online; `NOT_CAUGHT_UP`: all is there."""
    broker: int
    partitions: int
    """Partitions with this symptom in which its replica is missed. One partition may miss several."""
    since_ms: int | None
    """When the broker came to be fenced, to shut down or to be unregistered, in milliseconds since 1970; null where the
    log that is left does not tell, and of a broker that runs."""


class ExplainedSymptom(HttpModel):
    """One thing that is wrong. Of a controller: with no partition, topic or cause."""

    code: SymptomCode
    message: str
    """A sentence for people."""
    partitions: int
    topics: int
    """Topics that these belong to."""
    share: float
    """Of the partitions that were asked about, from 0 to 1."""
    causes: list[ExplainedCause]
    """Who explains most first."""
    named: list[AnsweredPartitions]
    """The first partitions."""


class ExplainedRemedy(HttpModel):
    """Something to do, and what it would bring if all before it in the list was done.

    `ELECT_UNCLEANLY`, `CANCEL_REASSIGNMENT`, `REJOIN_CONTROLLER` and `RECOVER_QUORUM` are for what nothing before them
    brings back; a reassignment is cancelled instead of all that.
    """

    code: RemedyCode
    message: str
    """A sentence for people."""
    command: str
    """What to type, where a command of Quorate does it; empty otherwise."""
    broker: int | None
    controller: int | None = None
    led_again: int
    """Partitions without a leader that would have one at once."""
    replicas: int
    """Missing replicas that would be in sync again once they have caught up."""
    elections: ElectionsReply
    """How those that are led again would be."""
    risk: RiskCode
    """`NONE`: nothing that was acknowledged is lost; `LAST_KNOWN_LEADER`: what the last leader had not flushed when it
    went down; `UNCLEAN`: what the new leader had not copied."""


class ReassignedReplica(HttpModel):
    """A replica of a partition that is being reassigned, among those that it is to have."""

    broker: int
    is_added: bool
    """Whether it is new there."""
    is_in_sync: bool
    is_awaited: bool
    """Whether the reassignment ends no earlier than it is in sync."""
    cause: CauseCode | None
    """Why it is not in sync; null where it is."""
    since_ms: int | None
    """When its broker came to be away or, where it is there, the replica to be added, in milliseconds since 1970; null
    where it is in sync, and where the log that is left does not tell."""


class ExplainedReassignment(HttpModel):
    """A reassignment that is open, and what it waits for."""

    progress: ReassignmentProgress
    """`COPYING`: all that are awaited are there and copy; `STALLED`: it cannot end before something is done, for one of
    them is not there, or there is no leader; `ENDING`: nobody is awaited, its leader's next change ends it."""
    before: list[int]
    """The replicas that cancelling it leaves."""
    target: list[int]
    """The replicas that it leaves when it ends, the preferred leader first."""
    leader: int | None
    """Whom the replicas copy from; null: there is none."""
    since_ms: int | None
    """When the first replica that is being added came to be so, in milliseconds since 1970; null where none is, and
    where the log that is left does not tell."""
    replicas: list[ReassignedReplica]
    """Those of the target."""


class ExplainedController(HttpModel):
    """One controller, and what its loss would mean."""

    node_id: int
    is_voter: bool
    """Whether it belongs to the quorum; one that does not is registered only, and nothing waits for it."""
    voter: VoterReply | None
    """What the quorum knows of it; null where it does not belong to it."""
    quorum: QuorumMargin | None
    """The quorum with and without it; null where it does not belong to it."""
    if_lost: list[CanStopReason]
    """What would be worse without it, as `can-stop` says; none: a majority goes on."""


class ExplainReply(HttpModel):
    """All that is wrong, why it is, and what can be done."""

    form: int = ANSWER_FORM
    state_offset: int
    """Offset of the state that it was answered from."""
    state_time_ms: int
    """When the last record of that state was written, in milliseconds since 1970."""
    partitions: int
    """Partitions that were asked about."""
    symptoms: list[ExplainedSymptom]
    """The gravest first; none where all is well."""
    remedies: list[ExplainedRemedy]
    """In the order in which they bring most."""
    reassignment: ExplainedReassignment | None = None
    """Of one partition that is being reassigned."""
    controller: ExplainedController | None = None
    """Where one was asked about."""
