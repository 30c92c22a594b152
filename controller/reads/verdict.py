"""The verdict on a cluster, with its reasons: what `quorate status` shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.controller.api.resources import BrokerReply, PartitionCounts, QuorumReply, Verdict

#: A voter or broker that lags by more than this is worth a sentence: several seconds of a busy cluster's records.
LAG_RECORDS_NOTABLE: Final = 10_000
#: How the reason begins where there is no active controller.
NO_ACTIVE: Final = "no active controller is known"


def judge(
    quorum: QuorumReply, brokers: Sequence[BrokerReply], partitions: PartitionCounts, faults: Sequence[str]
) -> tuple[Verdict, list[str]]:
    """The verdict and its reasons, the gravest first.

    ``no-quorum``: no active controller is known. ``critical``: partitions have no leader. ``degraded``: anything else
    that an operator should repair. Of the quorum of an old state nothing is said: nobody knows how it was.
    """
    voter_reasons = [] if quorum.is_past else _voter_reasons(quorum)
    reasons = [*faults, *voter_reasons, *_broker_reasons(brokers), *_partition_reasons(partitions)]
    verdict: Verdict = "degraded" if reasons else "healthy"
    if partitions.offline:
        reasons.insert(0, f"{_count(partitions.offline, 'partition')} of {partitions.total} without a leader")
        verdict = "critical"
    if quorum.active_id is None and not quorum.is_past:
        reasons.insert(0, f"{NO_ACTIVE}: nothing can be changed")
        verdict = "no-quorum"
    return verdict, reasons


def _voter_reasons(quorum: QuorumReply) -> list[str]:
    reasons = []
    gone = [voter.node_id for voter in quorum.voters if voter.role == "unreachable"]
    if gone:
        majority = len(quorum.voters) // 2 + 1
        spare = len(quorum.voters) - len(gone) - majority
        reasons.append(f"{_named('controller', gone)} unreachable: {max(spare, 0)} more may fail")
    not_voting = [voter for voter in quorum.voters if voter.role == "non-voter"]
    recovering = [voter.node_id for voter in not_voting if not voter.vote_waits_for]
    if recovering:
        reasons.append(f"{_named('controller', recovering)} not voting: memory was lost and is being recovered")
    reasons += [
        f"controller {voter.node_id} is not voting: memory was lost, {_listed('controller', voter.vote_waits_for)} must"
        " answer the active one first"
        for voter in not_voting
        if voter.vote_waits_for
    ]
    reasons += [
        f"controller {voter.node_id} lags {voter.lag_records} records behind"
        for voter in quorum.voters
        if (voter.lag_records or 0) > LAG_RECORDS_NOTABLE and voter.role != "unreachable"
    ]
    return reasons


def _broker_reasons(brokers: Sequence[BrokerReply]) -> list[str]:
    reasons = []
    fenced = [broker.id for broker in brokers if broker.state == "fenced"]
    if fenced:
        reasons.append(f"{_named('broker', fenced)} fenced")
    leaving = [broker.id for broker in brokers if broker.state == "controlled-shutdown"]
    if leaving:
        reasons.append(f"{_named('broker', leaving)} in controlled shutdown")
    reasons += [
        f"broker {broker.id} lags {broker.lag_records} records behind"
        for broker in brokers
        if (broker.lag_records or 0) > LAG_RECORDS_NOTABLE and broker.state != "fenced"
    ]
    return reasons


def _partition_reasons(partitions: PartitionCounts) -> list[str]:
    reasons = []
    if partitions.under_min_isr:
        reasons.append(f"{_count(partitions.under_min_isr, 'partition')} under min.insync.replicas")
    if partitions.under_replicated:
        reasons.append(f"{_count(partitions.under_replicated, 'partition')} under-replicated")
    return reasons


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _named(noun: str, ids: Sequence[int]) -> str:
    """ "broker 3 is", "brokers 3, 4 and 17 others are"."""
    return f"{_listed(noun, ids)} {'is' if len(ids) == 1 else 'are'}"


def _listed(noun: str, ids: Sequence[int]) -> str:
    """ "broker 3", "brokers 3, 4 and 17 others"."""
    if len(ids) == 1:
        return f"{noun} {ids[0]}"
    shown = ", ".join(map(str, ids[:5]))
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"{noun}s {shown}{more}"
