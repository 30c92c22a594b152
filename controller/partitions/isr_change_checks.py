"""The rules that an ISR asked for must meet, in Kafka's order; said once, for one partition or for columns of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.table.partition import RECOVERED, RECOVERING


@dataclass(frozen=True, slots=True)
class IsrChangeFacts:
    """The facts that the rules look at: plain values of one partition, or arrays [n] of n of them."""

    #: The broker that asks; one for all.
    broker_id: int
    #: -1 = nobody.
    leader: Any
    leader_epoch: Any
    partition_epoch: Any
    #: 0 = recovered, 1 = recovering.
    recovery_state: Any
    #: The state that the request starts from, and the recovery state that it asks for.
    asked_leader_epoch: Any
    asked_partition_epoch: Any
    asked_recovery_state: Any
    #: Replicas that the ISR asked for names.
    isr_size: Any
    #: It names somebody who is no replica, or a replica twice.
    has_stranger: Any
    #: It does not name the leader.
    lacks_leader: Any
    #: It names a broker that is not active, or is known to the leader under another epoch than its registration's.
    has_ineligible: Any


def isr_change_rules(facts: IsrChangeFacts) -> tuple[tuple[Any, ErrorCode], ...]:
    """Whether each rule is broken, and the error then; the first that is broken is answered."""
    asked_state = facts.asked_recovery_state
    is_recovering = asked_state == RECOVERING
    return (
        # A newer epoch than ours: then we are not the active controller any more.
        (facts.asked_leader_epoch > facts.leader_epoch, ErrorCode.NOT_CONTROLLER),
        (facts.asked_partition_epoch > facts.partition_epoch, ErrorCode.NOT_CONTROLLER),
        (facts.asked_leader_epoch < facts.leader_epoch, ErrorCode.FENCED_LEADER_EPOCH),
        (facts.leader != facts.broker_id, ErrorCode.INVALID_REQUEST),
        (facts.asked_partition_epoch < facts.partition_epoch, ErrorCode.INVALID_UPDATE_VERSION),
        (facts.has_stranger, ErrorCode.INVALID_REQUEST),
        (facts.lacks_leader, ErrorCode.INVALID_REQUEST),
        (is_recovering & (facts.isr_size > 1), ErrorCode.INVALID_REQUEST),
        (is_recovering & (facts.recovery_state == RECOVERED), ErrorCode.INVALID_REQUEST),
        ((asked_state != RECOVERING) & (asked_state != RECOVERED), ErrorCode.INVALID_REQUEST),
        (facts.has_ineligible, ErrorCode.INELIGIBLE_REPLICA),
    )
