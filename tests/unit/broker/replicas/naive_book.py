"""The rules of an ISR book, one partition at a time: no pages, no columns, and every row is looked at every time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import inf

from quorate.broker.replicas.led_rows import FollowerGroup
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.partition import Partition

Key = tuple[Uuid, int]


@dataclass
class Known:
    """A follower: when it was caught up by itself, and whether its broker's group speaks for it."""

    caught_up_ms: float
    is_member: bool = False


@dataclass
class Row:
    """A partition that is led here, by replica what is known, and when it may be proposed."""

    state: Partition
    known: dict[int, Known]
    hold_ms: float = -inf


class NaiveBook:
    """What ``IsrBook`` promises."""

    def __init__(self, lag_max_ms: float, *, trusts_isr: bool) -> None:
        self.lag_max_ms = lag_max_ms
        self.trusts_isr = trusts_isr
        self.groups: dict[int, FollowerGroup] = {}
        self.rows: dict[Key, Row] = {}
        self.image = EMPTY_IMAGE

    def update(self, image: MetadataImage, leaders: Collection[int], now_ms: float) -> None:
        before, self.image = self.image, image
        old_rows, self.rows = self.rows, {}
        for topic in image.topics.by_id:
            for number, state in image.partitions.partitions_of(topic):
                if state.leader in leaders and len(state.replicas) > 1:
                    self.rows[topic, number] = self._row(state, old_rows.get((topic, number)), now_ms)
        for broker in restarted(before, image):
            for row in self.rows.values():
                if broker in row.known and broker not in row.state.isr:
                    row.known[broker].caught_up_ms = -inf

    def note(self, key: Key, leader_epoch: int, broker: int, told_ms: float, *, is_member: bool) -> ErrorCode:
        if self.image.partitions.row(*key) is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        row = self.rows.get(key)
        if row is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader_epoch != row.state.leader_epoch:
            is_old = leader_epoch < row.state.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        if broker == row.state.leader or broker not in row.known:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        known = row.known[broker]
        if told_ms == -inf or told_ms > known.caught_up_ms:
            known.caught_up_ms = told_ms
        known.is_member = is_member
        return ErrorCode.NONE

    def leave_group(self, broker: int) -> None:
        group = self.groups.pop(broker)
        for row in self.rows.values():
            known = row.known.get(broker)
            if known is not None and known.is_member:
                row.known[broker] = Known(max(known.caught_up_ms, group.caught_up_ms))

    def wanted(self, row: Row, now_ms: float) -> frozenset[int]:
        """The ISR that the leader of a partition would ask for."""
        limit_ms, members = now_ms - self.lag_max_ms, set(row.state.isr)
        for broker, directory in zip(row.state.replicas, row.state.directories, strict=True):
            known = row.known[broker]
            group = self.groups.get(broker, FollowerGroup()) if known.is_member else FollowerGroup()
            if broker == row.state.leader:
                continue
            if broker in row.state.isr:
                if max(known.caught_up_ms, group.caught_up_ms) < limit_ms:
                    members.remove(broker)
                continue
            is_level = known.caught_up_ms == inf or (group.is_level and group.caught_up_ms >= limit_ms)
            if is_level and self._may_enter(broker, directory):
                members.add(broker)
        return frozenset(members)

    def _row(self, state: Partition, old: Row | None, now_ms: float) -> Row:
        in_isr = inf if self.trusts_isr else now_ms
        row = Row(state, {broker: Known(in_isr if broker in state.isr else -inf) for broker in state.replicas})
        if old is None or old.state.leader_epoch != state.leader_epoch:
            return row
        if old.state.partition_epoch == state.partition_epoch:
            row.hold_ms = old.hold_ms
        for broker in row.known.keys() & old.known.keys():
            known = row.known[broker] = old.known[broker]
            if known.caught_up_ms == inf and broker in old.state.isr and broker not in state.isr:
                known.caught_up_ms = -inf
        return row

    def _may_enter(self, broker: int, directory: Uuid) -> bool:
        if broker not in self.image.cluster.active_brokers():
            return False
        registered = self.image.cluster.brokers[broker].directories
        if not registered:
            return directory != DIRECTORY_LOST
        return directory in (*registered, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED)


def restarted(before: MetadataImage, image: MetadataImage) -> list[int]:
    """Brokers whose registration is another one, or gone."""
    old, new = before.cluster.brokers, image.cluster.brokers
    return [broker for broker in old if broker not in new or new[broker].epoch != old[broker].epoch]
