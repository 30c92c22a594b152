"""One log that several controllers share: appended to by whoever leads, committed in pieces, as a test says.

The model of agreement that ``quorum`` keeps its promises to: what is committed stays; of a tail that is not, all or
part may go when another leads; a leader that does not know yet that it was deposed goes on appending to a log of its
own; a leader is announced to its controller once it was given everything up to its epoch's first batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quorate.metadata_log.batches.batch import control_batch, parse_header, place_batch
from quorate.metadata_log.errors import NotController
from quorate.metadata_log.ids import ZERO_UUID
from quorate.metadata_log.records.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    Record,
    VotersRecord,
    VotersVoter,
)
from tests.unit.controller.manual_quorum import Committed

NODES = (1, 2, 3)


class Listener(Protocol):
    """The controller's side of the quorum."""

    def on_commit(self, batches: Committed) -> None: ...

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None: ...


def end_of(batches: Sequence[bytes]) -> int:
    return parse_header(batches[-1]).end_offset if batches else 0


class SharedLog:
    """The log as whoever leads has it. The first ``committed`` batches are agreed."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.committed = 0
        self.epoch = 0
        self.leader: Member | None = None
        #: Batches that the leader must commit at least: an epoch commits nothing before its own first batch.
        self.own_from = 0

    @property
    def committed_end(self) -> int:
        return end_of(self.batches[: self.committed])

    def commit(self, count: int) -> None:
        """Some more batches are on a majority."""
        if self.leader is not None:
            self.committed = min(max(self.committed + count, self.own_from), len(self.batches))

    def elect(self, member: Member, kept: int, wall_ms: int) -> None:
        """``member`` leads the next epoch; of the tail that is not committed only ``kept`` batches were known to it."""
        deposed, self.leader = self.leader, None
        if deposed is not None:
            deposed.own_log = list(self.batches)
            deposed.own_committed = self.committed
        self.epoch += 1
        del self.batches[self.committed + kept :]
        member.stop_leading()
        member.announce(None, self.epoch)
        records: list[tuple[Record, int]] = [(LeaderChangeMessage(leader_id=member.node_id), 0)]
        if not self.batches:
            voters = tuple(VotersVoter(node, ZERO_UUID) for node in NODES)
            records += [(KRaftVersionRecord(1), 0), (VotersRecord(voters), 0)]
        self.batches.append(place_batch(control_batch(records, wall_ms), end_of(self.batches), self.epoch))
        self.own_from = len(self.batches)
        self.leader = member
        member.leads = self.epoch


class Member:
    """One node's part of it; ``controller.engine.interfaces.Quorum``."""

    def __init__(self, node_id: int, log: SharedLog) -> None:
        self.node_id = node_id
        self.log = log
        self.listener: Listener | None = None
        #: Batches given to the controller.
        self.delivered = 0
        #: Exclusive end offset of those.
        self.delivered_end = 0
        #: What its controller was told last.
        self.announced: tuple[int | None, int] = (None, 0)
        #: The epoch that it leads, or thinks it does; None = none.
        self.leads: int | None = None
        #: Of a leader that was deposed and does not know it: the log as it goes on writing it.
        self.own_log: list[bytes] | None = None
        #: How much of that it knows to be committed.
        self.own_committed = 0
        self.fail_next_append: Exception | None = None
        #: Questions that no majority has answered yet, each with what was committed when it was asked.
        self.barriers: list[tuple[int, Callable[[int | NotController], None]]] = []

    # --- controller.engine.interfaces.Quorum ---------------------------------------------------------------------

    @property
    def leader_id(self) -> int | None:
        return self.node_id if self.leads is not None else self.announced[0]

    @property
    def log_end_offset(self) -> int:
        return end_of(self._appended_to)

    def append(self, epoch: int, payload: bytes, record_count: int) -> int:
        if self.fail_next_append is not None:
            error, self.fail_next_append = self.fail_next_append, None
            raise error
        if self.leads is None or epoch != self.leads:
            raise NotController(self.leader_id)
        batches = self._appended_to
        batch = place_batch(payload, end_of(batches), epoch)
        assert parse_header(batch).record_count == record_count
        batches.append(batch)
        return end_of(batches) - 1

    def resign(self, epoch: int) -> None:
        if self.leads == epoch:
            self.stop_leading()
            self.announce(None, epoch)

    def read_barrier(self, done: Callable[[int | NotController], None]) -> None:
        """A majority answers some time, unless it follows another leader by then: then there is no answer until it
        knows."""
        if self.leads is None or self.announced != (self.node_id, self.leads):
            raise NotController(self.leader_id)
        self.barriers.append((self.log.committed_end, done))

    # --- what happens to it --------------------------------------------------------------------------

    @property
    def readable(self) -> int:
        """Batches that it may be given."""
        return self.log.committed if self.own_log is None else self.own_committed

    @property
    def _appended_to(self) -> list[bytes]:
        return self.log.batches if self.own_log is None else self.own_log

    def own_batches(self) -> Sequence[bytes]:
        """Its log, while it leads or thinks it does."""
        return self._appended_to

    def deliver(self, count: int) -> None:
        """Give its controller the next committed batches, some at a time; and its leadership, once that is due."""
        assert self.listener is not None
        if self.own_log is None:
            barriers, self.barriers = self.barriers, []
            for offset, done in barriers:
                done(offset)
        end = min(self.delivered + count, self.readable)
        if end > self.delivered:
            batches = self._appended_to[self.delivered : end]
            if parse_header(batches[-1]).epoch > self.announced[1]:
                self.learn()
            self.delivered, self.delivered_end = end, end_of(batches)
            self.listener.on_commit(Committed(batches))
        if self.own_log is None and self.leads is not None and self.delivered >= self.log.own_from:
            self.announce(self.node_id, self.leads)

    def learn(self) -> None:
        """Hear who leads now."""
        leader = self.log.leader
        if leader is self:
            return
        if self.own_log is not None or self.leads is not None:
            self.stop_leading()
        self.announce(None if leader is None else leader.node_id, self.log.epoch)

    def stop_leading(self) -> None:
        if self.log.leader is self:
            self.log.leader = None
        self.leads = None
        self.own_log = None
        barriers, self.barriers = self.barriers, []
        for _, done in barriers:
            done(NotController(None))

    def announce(self, leader_id: int | None, epoch: int) -> None:
        assert self.listener is not None
        if self.announced != (leader_id, epoch):
            self.announced = (leader_id, epoch)
            self.listener.on_leader_change(leader_id, epoch)
