"""Partitions as the planner takes them, out of what controllers answer."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quorate.controller.api.resources import BrokerReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.planning.cluster import NONE, BrokerRole, Brokers, ClusterLayout, Counts, Mask
from quorate.controller.protocol import DescribedPartition
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli.moves.plans import PartitionName
from quorate.scripts.cli.topics.reassignment_steps import assignment_of
from quorate.scripts.terminal.output import counted
from quorate.scripts.terminal.paging import Wanted, all_partitions


class HiddenPartitions(QuorateError):
    """The caller is not shown all partitions: a plan without the others would be wrong."""


class NoSuchBroker(QuorateError):
    """A broker is not registered, and holds no replica."""


@dataclass(frozen=True)
class MoveRules:
    """The part that brokers have in a plan, as the user says it.

    Attributes:
        drained: those that are to hold nothing. excluded: those that get nothing. include_fenced: whether brokers that
            are down get replicas too. drains_unknown: whether brokers leave that are not registered.
    """

    drained: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    include_fenced: bool = False
    drains_unknown: bool = False

    def role(self, broker: BrokerReply) -> BrokerRole:
        """That of a registered broker."""
        if broker.id in self.drained:
            return BrokerRole.DRAINS
        is_up = broker.state == "active" or (broker.state == "fenced" and self.include_fenced)
        # As controllers place new partitions: nothing goes to a broker whose directories all take no more.
        is_cordoned = bool(broker.directories) and set(broker.directories) <= set(broker.cordoned_directories)
        return BrokerRole.TAKES if is_up and not is_cordoned and broker.id not in self.excluded else BrokerRole.KEEPS

    def role_of_unknown(self, broker: int) -> BrokerRole:
        """That of one that is not registered and holds replicas."""
        return BrokerRole.DRAINS if broker in self.drained or self.drains_unknown else BrokerRole.KEEPS


@dataclass(frozen=True)
class NamedLayout:
    """Partitions with their names, row by row, where their open reassignments would bring them.

    Attributes:
        states: of the registered brokers, by id. out_of_sync: bool[partitions, places]. in_motion: the partitions with
            an open reassignment. leaderless: those without a leader: nobody is there to copy from.
    """

    layout: ClusterLayout
    names: Sequence[PartitionName]
    states: Mapping[int, str]
    out_of_sync: Mask
    in_motion: frozenset[PartitionName]
    leaderless: Sequence[PartitionName]


async def read_layout(client: ControllerClient, parts: Collection[Wanted] | None, rules: MoveRules) -> NamedLayout:
    """The layout of the partitions that fit one of some filters, with counts of what brokers have besides.

    Without filters it is that of all partitions.

    Raises:
        HiddenPartitions: not all partitions are shown to this caller. NoSuchBroker: one that is to be drained or
            left out is none.
    """
    await _check_all_are_shown(client)
    found: dict[PartitionName, DescribedPartition] = {}
    for wanted in [{}] if parts is None else parts:
        for topic in (await all_partitions(client, wanted, sys.maxsize)).topics:
            found |= {(topic.name or "", one.partition_index): one for one in topic.partitions}
    replies = (await client.describe_brokers()).brokers
    brokers = _brokers(replies, found.values(), rules)
    names = sorted(found)
    rows = [found[name] for name in names]
    layout = ClusterLayout.of(
        brokers,
        [assignment_of(one).target_replicas for one in rows],
    )
    if parts is not None:
        layout = replace(
            layout,
            other_loads=await _besides(client, brokers, [one.replica_nodes for one in rows], "broker"),
            other_leads=await _besides(client, brokers, [[one.leader_id] for one in rows], "leader"),
        )
    return NamedLayout(
        layout=layout,
        names=names,
        states={broker.id: broker.state for broker in replies},
        out_of_sync=_out_of_sync(layout, rows),
        in_motion=frozenset(name for name, one in found.items() if assignment_of(one).is_open),
        leaderless=[name for name in names if found[name].leader_id < 0],
    )


def on_brokers(brokers: Collection[int]) -> list[Wanted]:
    """The filters of the partitions that have a replica on one of these."""
    return [{"broker": broker} for broker in sorted(brokers)]


async def _check_all_are_shown(client: ControllerClient) -> None:
    shown = (await client.list_partitions(limit=1, consistency="linearizable")).matching
    total = (await client.describe_cluster()).partitions.total
    if shown < total:
        raise HiddenPartitions(
            f"{counted(total - shown, 'partition')} of {total} are hidden from you, and no plan can do without them: "
            "DESCRIBE on all topics is needed"
        )


def _brokers(replies: Sequence[BrokerReply], rows: Collection[DescribedPartition], rules: MoveRules) -> Brokers:
    racks = {broker.id: broker.rack for broker in replies}
    roles = {broker.id: rules.role(broker) for broker in replies}
    for unknown in {id_ for one in rows for id_ in one.replica_nodes} - set(racks):
        racks[unknown], roles[unknown] = None, rules.role_of_unknown(unknown)
    missing = sorted((rules.drained | rules.excluded) - set(racks))
    if missing:
        raise NoSuchBroker(
            f"broker {', '.join(map(str, missing))} is not registered and holds no replica: there are "
            f"{', '.join(map(str, sorted(racks))) or 'none'}"
        )
    return Brokers.of(racks, roles)


async def _besides(client: ControllerClient, brokers: Brokers, here: Sequence[Sequence[int]], role: str) -> Counts:
    """Return, for each broker, of how many partitions that are not here it is one of the replicas, or the leader."""
    ids = brokers.ids.tolist()
    total = [(await client.list_partitions(limit=1, consistency="linearizable", **{role: id_})).matching for id_ in ids]
    counts = dict.fromkeys(ids, 0)
    for row in here:
        for id_ in row:
            if id_ in counts:
                counts[id_] += 1
    # What changed between two answers is no reason for a count below nothing.
    return np.array([max(0, all_ - counts[id_]) for id_, all_ in zip(ids, total, strict=True)], np.int64)


def _out_of_sync(layout: ClusterLayout, rows: Sequence[DescribedPartition]) -> Mask:
    ids = np.append(layout.brokers.ids, NONE)[layout.replicas]
    stale = np.zeros(ids.shape, np.bool_)
    for at, one in enumerate(rows):
        stale[at] = ~np.isin(ids[at], one.isr_nodes)
    stale &= layout.replicas != NONE
    return stale
