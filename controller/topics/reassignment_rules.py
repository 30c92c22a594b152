"""A reassignment's effect on a partition's lists (Kafka's ``PartitionReassignmentReplicas`` and ``…Revert``).

When it completes is a rule of ``controller.partitions.rules``: a leader's changes of the ISR complete it.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.table.reassignment import Assignment


@dataclass(frozen=True, slots=True)
class Reverted:
    """The partition as cancelling its reassignment leaves it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    #: Nobody who stays was in sync: the first replica would lead all the same.
    is_unclean: bool


def start_reassignment(present: tuple[int, ...], target: tuple[int, ...]) -> Assignment:
    """From the present replicas, those of a reassignment that still runs included, to the target ones."""
    removing = tuple(sorted(set(present) - set(target)))
    adding = tuple(sorted(set(target) - set(present)))
    return Assignment((*target, *removing), adding, removing)


def revert_reassignment(assignment: Assignment, isr: tuple[int, ...]) -> Reverted:
    """Drop the adding replicas; those that were to go stay.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT, nobody would stay.
    """
    replicas = assignment.original_replicas
    if not replicas:
        message = "Invalid replica assignment: addingReplicas contains all replicas."
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    staying = tuple(broker for broker in isr if broker not in assignment.adding)
    return Reverted(replicas, staying or replicas[:1], is_unclean=not staying)
