"""The verdict on a cluster, with its reasons: what `quorate status` shows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from quorate.controller.api.answers.status_models import StatusReason, Verdict
from quorate.controller.api.resources import BrokerReply, PartitionCounts, QuorumReply, VoterReply
from quorate.controller.reads.voters import fit_voters, lags, majority_of


def judge(
    quorum: QuorumReply,
    brokers: Sequence[BrokerReply],
    partitions: PartitionCounts,
    faults: Sequence[str],
    unregistered: Mapping[int, int] = MappingProxyType({}),
) -> tuple[Verdict, list[StatusReason]]:
    """The verdict and its reasons, the gravest first.

    ``no-quorum``: no active controller is known. ``critical``: partitions have no leader. ``degraded``: anything else
    that an operator should repair. Of the quorum of an old state nothing is said: nobody knows how it was.

    Args:
        faults: sentences of the controller that answers about itself. unregistered: replicas on brokers that are not
            registered, by their ids.
    """
    reasons = [StatusReason(code="CONTROLLER_FAULT", message=fault, nodes=[quorum.observed_by]) for fault in faults]
    reasons += [] if quorum.is_past else voter_reasons(quorum.voters)
    reasons += [*_broker_reasons(brokers), *_unregistered_reasons(unregistered), *_partition_reasons(partitions)]
    verdict: Verdict = "degraded" if reasons else "healthy"
    if partitions.offline:
        message = f"{_count(partitions.offline, 'partition')} of {partitions.total:,} without a leader"
        reasons.insert(0, StatusReason(code="PARTITIONS_OFFLINE", message=message, partitions=partitions.offline))
        verdict = "critical"
    if quorum.active_id is None and not quorum.is_past:
        message = "no active controller is known: nothing can be changed"
        reasons.insert(0, StatusReason(code="NO_ACTIVE_CONTROLLER", message=message))
        verdict = "no-quorum"
    return verdict, reasons


def voter_reasons(voters: Sequence[VoterReply]) -> list[StatusReason]:
    """Those that are about voters, by what the active one says of them."""
    reasons = []
    gone = [voter.node_id for voter in voters if voter.role == "unreachable"]
    if gone:
        spare = len(fit_voters(voters)) - majority_of(voters)
        message = f"{_named('controller', gone)} unreachable: {max(spare, 0)} more can fail before writes stop"
        reasons.append(StatusReason(code="CONTROLLERS_UNREACHABLE", message=message, nodes=gone))
    not_voting = [voter for voter in voters if voter.role == "non-voter"]
    recovering = [voter.node_id for voter in not_voting if not voter.vote_waits_for]
    if recovering:
        message = f"{_named('controller', recovering)} not voting: memory was lost and is being recovered"
        reasons.append(StatusReason(code="CONTROLLERS_NOT_VOTING", message=message, nodes=recovering))
    for voter in not_voting:
        if voter.vote_waits_for:
            message = (
                f"controller {voter.node_id} is not voting: memory was lost, "
                f"{_listed('controller', voter.vote_waits_for)} must answer the active one first"
            )
            reasons.append(StatusReason(code="CONTROLLERS_NOT_VOTING", message=message, nodes=[voter.node_id]))
    for voter in voters:
        if lags(voter.lag_records) and voter.role != "unreachable":
            message = f"controller {voter.node_id} lags {voter.lag_records:,} records behind"
            reasons.append(StatusReason(code="CONTROLLER_LAGS", message=message, nodes=[voter.node_id]))
    return reasons


def _broker_reasons(brokers: Sequence[BrokerReply]) -> list[StatusReason]:
    reasons = []
    fenced = [broker.id for broker in brokers if broker.state == "fenced"]
    if fenced:
        message = f"{_named('broker', fenced)} fenced"
        reasons.append(StatusReason(code="BROKERS_FENCED", message=message, nodes=fenced))
    leaving = [broker.id for broker in brokers if broker.state == "controlled-shutdown"]
    if leaving:
        message = f"{_named('broker', leaving)} in controlled shutdown"
        reasons.append(StatusReason(code="BROKERS_LEAVING", message=message, nodes=leaving))
    for broker in brokers:
        if lags(broker.lag_records) and broker.state != "fenced":
            message = f"broker {broker.id} lags {broker.lag_records:,} records behind"
            reasons.append(StatusReason(code="BROKER_LAGS", message=message, nodes=[broker.id]))
    return reasons


def _unregistered_reasons(held: Mapping[int, int]) -> list[StatusReason]:
    if not held:
        return []
    ids = sorted(held)
    holds = f"{'holds' if len(ids) == 1 else 'hold'} {_count(sum(held.values()), 'replica')}"
    message = f"{_named('broker', ids)} not registered and {holds}"
    return [StatusReason(code="BROKERS_UNREGISTERED", message=message, nodes=ids)]


def _partition_reasons(counts: PartitionCounts) -> list[StatusReason]:
    reasons = []
    if counts.under_min_isr:
        message = f"{_count(counts.under_min_isr, 'partition')} under min.insync.replicas"
        partitions = counts.under_min_isr
        reasons.append(StatusReason(code="PARTITIONS_UNDER_MIN_ISR", message=message, partitions=partitions))
    if counts.under_replicated:
        message = f"{_count(counts.under_replicated, 'partition')} under-replicated"
        partitions = counts.under_replicated
        reasons.append(StatusReason(code="PARTITIONS_UNDER_REPLICATED", message=message, partitions=partitions))
    return reasons


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _named(noun: str, ids: Sequence[int]) -> str:
    """ "broker 3 is", "brokers 3, 4 are"."""
    return f"{_listed(noun, ids)} {'is' if len(ids) == 1 else 'are'}"


def _listed(noun: str, ids: Sequence[int]) -> str:
    """ "broker 3", "brokers 3, 4", "brokers 3, 4, 5, 6, 7 and 17 more"."""
    if len(ids) == 1:
        return f"{noun} {ids[0]}"
    shown = ", ".join(map(str, ids[:5]))
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"{noun}s {shown}{more}"
