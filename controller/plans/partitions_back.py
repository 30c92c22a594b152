"""The way back from moves; and what does not come back: growth, leaders, registrations."""

from __future__ import annotations

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.plans.partition_facts import find_partition
from quorate.controller.plans.way_back_parts import FoundWays, RequestStates
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.snapshots.table.partition import RECOVERED, Partition
from quorate.snapshots.table.table_difference import table_difference


def partitions_back(states: RequestStates, found: FoundWays) -> None:
    """Move partitions to where they were, or were going."""
    moves: dict[str, list[ReassignablePartition]] = {}
    grown: set[str] = set()
    led, unclean = 0, 0
    for name, number, old, new in _changed(states):
        if old is None:
            grown.add(name)
        elif old.assignment != new.assignment:
            replicas = _wanted(states, f"{name}-{number}", old, new, find_partition(states.now, name, number), found)
            if replicas is not None:
                moves.setdefault(name, []).append(ReassignablePartition(partition_index=number, replicas=replicas))
        elif old.leader != new.leader:
            led += 1
            unclean += new.leader_recovery_state != RECOVERED
    if moves:
        topics = [ReassignableTopic(name=name, partitions=partitions) for name, partitions in moves.items()]
        request = AlterPartitionReassignmentsRequest(topics=topics)
        found.changes.append(PlannedChange(alter_partition_reassignments=request))
    found.lost += (f"topic {name} keeps its partitions: none can be taken away" for name in sorted(grown))
    if led:
        found.lost.append(f"leaders of {_partitions(led)}: they are elected, and not set")
    if unclean:
        found.lost.append(f"the records that the leaders of {_partitions(unclean)} lacked")
    for broker_id in sorted(states.before.cluster.brokers.keys() - states.after.cluster.brokers.keys()):
        found.lost.append(f"the registration of broker {broker_id}: it registers itself when it is started")


def _partitions(count: int) -> str:
    return f"{count:,} partition{'' if count == 1 else 's'}"


def _changed(states: RequestStates) -> list[tuple[str, int, Partition | None, Partition]]:
    """Topic, number, and the partition before and after; without topics that came or went."""
    before, after = states.before.partitions, states.after.partitions
    difference = table_difference(before, after)
    own = states.own_topics
    changed = []
    for row, old_row in zip(difference.rows.tolist(), difference.old_rows.tolist(), strict=True):
        name = states.after.topics.by_id[after.topic_id(row)].name
        if name not in own:
            old = None if old_row < 0 else before.partition(old_row)
            changed.append((name, after.partition_id(row), old, after.partition(row)))
    return changed


def _wanted(
    states: RequestStates, name: str, old: Partition, new: Partition, now: Partition | None, found: FoundWays
) -> list[int] | None:
    """The replicas that a partition is to have again; None: it has them, or it is not ours to move any more."""
    back, there = old.assignment.target_replicas, new.assignment.target_replicas
    if now is None:
        found.since.append(f"partition {name} is gone")
    elif now.assignment.target_replicas != there:
        found.since.append(f"partition {name} goes to {_ids(now.assignment.target_replicas)}, not to {_ids(there)}")
    elif now.replicas != back or now.assignment.is_open:
        return list(back)
    return None


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))
