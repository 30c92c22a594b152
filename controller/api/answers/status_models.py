"""The state of a cluster on one screen, and what is asked for with it: `/v1/status`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.api.models import HttpModel, PastViewParameters
from quorate.controller.api.resources import BrokerReply, ElectionsReply, PartitionCounts, QuorumReply, StatesReply

Verdict = Literal["healthy", "degraded", "critical", "no-quorum"]
ReasonCode = Literal[
    "NO_ACTIVE_CONTROLLER",
    "PARTITIONS_OFFLINE",
    "CONTROLLER_FAULT",
    "CONTROLLERS_UNREACHABLE",
    "CONTROLLERS_NOT_VOTING",
    "CONTROLLER_LAGS",
    "BROKERS_FENCED",
    "BROKERS_LEAVING",
    "BROKERS_UNREGISTERED",
    "BROKER_LAGS",
    "PARTITIONS_UNDER_MIN_ISR",
    "PARTITIONS_UNDER_REPLICATED",
    "NO_QUORUM",
    "NO_CONTROLLER_ANSWERS",
    "CONTROLLER_REFUSES",
    "ACTIVE_CONTROLLER_SILENT",
]


#: Of an HTTP API. Without TLS it is read on the way, without an authorizer whoever gets there may do everything.
Protection = Literal["tls", "authorizer"]


class StatusParameters(PastViewParameters):
    """The node whose view is wanted, the moment of the state, and how much."""

    explain: bool = False
    """Whether it is to say why, too: `explanation`. Takes longer where much is wrong."""


class StatusReason(HttpModel):
    """One reason why a cluster is not healthy."""

    code: ReasonCode
    """Stable: for programs. The last four are of whoever asked several controllers, and of no controller's answer."""
    message: str
    """A sentence for people."""
    nodes: list[int] = Field(default_factory=list)
    """Ids of the controllers, or brokers, that it is about; ascending."""
    partitions: int = 0
    """Partitions that it is about."""


class StatusReply(HttpModel):
    """The state of the cluster on one screen, for an operator."""

    verdict: Verdict
    """Of an old state it is about brokers and partitions: no log says how the quorum was."""
    reasons: list[StatusReason]
    """Why it is not healthy, the gravest first."""
    cluster_id: str
    quorum: QuorumReply
    brokers: list[BrokerReply]
    topics: int
    partitions: PartitionCounts
    offline_partitions: list[str]
    """`topic-partition` of the first ones without a leader."""
    states: StatesReply
    elections: ElectionsReply
    unsupported: dict[str, int]
    """Entities that are stored and without effect here, by kind."""
    unprotected_by: list[Protection]
    """What the API of the controller that answers goes without; nothing, where an old state is asked for."""
    explanation: ExplainReply | None = None
    """What is wrong with partitions, why, and what to do, as of `/v1/answers/explain`, with no partition named; null
    where it was not asked for, or no partition has anything, or so many ask that its turn did not come in time."""
