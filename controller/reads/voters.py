"""The voters that carry a quorum: the one rule of the verdict, of stopping controllers, and of explaining one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.controller.api.resources import VoterReply

#: A voter or broker that lags by more than this is worth a sentence: several seconds of a busy cluster's records.
LAG_RECORDS_NOTABLE: Final = 10_000


def lags(lag_records: int | None) -> bool:
    """Whether a lag is worth a sentence; one that nobody knows is not."""
    return (lag_records or 0) > LAG_RECORDS_NOTABLE


def votes(voter: VoterReply) -> bool:
    """Whether its vote counts now."""
    return voter.role in ("active", "standby")


def is_behind(voter: VoterReply) -> bool:
    """A majority with it would wait until it has what it lacks: seconds of a busy cluster's records."""
    return votes(voter) and lags(voter.lag_records)


def fit_voters(voters: Sequence[VoterReply]) -> list[int]:
    """Ids of those with which a majority commits at once."""
    return [voter.node_id for voter in voters if votes(voter) and not is_behind(voter)]


def majority_of(voters: Sequence[VoterReply]) -> int:
    """Voters that must run for anything to be changed."""
    return len(voters) // 2 + 1
