"""Answers to the question what is wrong: `/v1/answers/explain`, and a part of `/v1/status`. See docs/answers.md."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from quorate.controller.api.models import HttpModel, PastViewParameters
from quorate.controller.api.resources import ElectionsReply
from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

SymptomCode = Literal[
    "PARTITIONS_OFFLINE", "PARTITIONS_UNDER_MIN_ISR", "PARTITIONS_UNDER_REPLICATED", "REASSIGNMENTS_OPEN"
]
CauseCode = Literal["BROKER_DOWN", "BROKER_LEAVING", "BROKER_UNKNOWN", "DIRECTORY_OFFLINE", "NOT_CAUGHT_UP"]
RemedyCode = Literal["START_BROKER", "WAIT", "RESTORE_DIRECTORY", "REASSIGN", "ELECT_UNCLEANLY"]
RiskCode = Literal["NONE", "LAST_KNOWN_LEADER", "UNCLEAN"]

#: Raised when a field or a code changes its meaning or goes; new ones may come without.
ANSWER_FORM: Final = 1
#: Partitions that an answer names at most.
NAMED_MAX: Final = 10_000


class AnsweredPartitions(HttpModel):
    """Partitions of one topic."""

    topic: str
    partitions: list[int]
    """Their numbers, ascending."""


class ExplainParameters(PastViewParameters):
    """The subject of an explanation; without any of it the whole cluster."""

    topic: str = Field(default="", max_length=TOPIC_NAME_CHARS_MAX)
    """Only the partitions of this topic."""
    partition: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only this one of them."""
    broker: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Only partitions with a replica on this broker."""
    limit: int = Field(default=20, ge=0, le=NAMED_MAX)
    """Most partitions that each symptom names; counts are of all."""

    @model_validator(mode="after")
    def _is_one_subject(self) -> Self:
        if self.partition is not None and not self.topic:
            raise ValueError("`partition` is a number in a topic: name the `topic`, too")
        if self.broker is not None and self.topic:
            raise ValueError("`broker` and `topic` exclude each other")
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
    """One thing that is wrong."""

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
    """Something to do, and what it would bring if all before it in the list was done."""

    code: RemedyCode
    message: str
    """A sentence for people."""
    command: str
    """What to type, where a command of Quorate does it; empty otherwise."""
    broker: int | None
    led_again: int
    """Partitions without a leader that would have one at once."""
    replicas: int
    """Missing replicas that would be in sync again once they have caught up."""
    elections: ElectionsReply
    """How those that are led again would be."""
    risk: RiskCode
    """`NONE`: nothing that was acknowledged is lost; `LAST_KNOWN_LEADER`: what the last leader had not flushed when it
    went down; `UNCLEAN`: what the new leader had not copied."""


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
