"""Reasons against stopping something, and the partitions and the quorum that they are about. See docs/answers.md."""

from __future__ import annotations

from typing import Final, Literal

from quorate.controller.api.models import HttpModel

StopReasonCode = Literal[
    "PARTITIONS_OFFLINE",
    "PARTITIONS_UNDER_MIN_ISR",
    "UNCLEAN_ELECTIONS",
    "QUORUM_LOST",
    "QUORUM_LOST_UNTIL_CAUGHT_UP",
    "QUORUM_NOT_KNOWN",
]

#: Raised when a field or a code changes its meaning or goes; new ones may come without.
ANSWER_FORM: Final = 1
#: Partitions that an answer names at most.
NAMED_MAX: Final = 10_000


class AnsweredPartitions(HttpModel):
    """Partitions of one topic."""

    topic: str
    partitions: list[int]
    """Their numbers, ascending."""


class CanStopReason(HttpModel):
    """One reason why not: something that would be worse than it is."""

    code: StopReasonCode
    """Stable: for programs."""
    message: str
    """A sentence for people."""
    count: int
    """Partitions, or controllers, that it is about."""
    topics: list[AnsweredPartitions]
    """The first partitions, by topic and number; empty where it is about controllers."""


class QuorumMargin(HttpModel):
    """The quorum without the controllers that are to be stopped."""

    voters: int
    majority: int
    """Voters that must run for anything to be changed."""
    left: list[int]
    """Voters that would go on voting, and have what the active one has."""
    may_fail_now: int
    """Voters that may fail while all run that run now."""
    may_fail_then: int
    """... and once these have been stopped; negative: so many are missing."""
    moves_leadership: bool
    """Whether the active controller is among those that stop: an election, some tens of milliseconds."""
