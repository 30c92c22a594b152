"""Moves are carried out a few at once: as some end, others begin, until all have ended or were refused."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.metadata_log.errors import ErrorCode, OutcomeUnknown, QuorateError
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.moves.plans import PartitionName
from quorate.scripts.cli.moves.progress import MoveProgress, Stall
from quorate.scripts.terminal.asking import answered

#: Reassignments that are open at once: so many copies do not starve the clients of most clusters.
AT_ONCE_DEFAULT: Final = 50
#: Seconds between two looks at what is still open.
_LOOK_S: Final = 0.5
#: Seconds after which a move that is still open is said to stall.
_STALL_S: Final = 30.0
#: ... where it waits for a broker that is not active: that will not change by waiting.
_STALL_BY_BROKER_S: Final = 2.0
_ACTIVE: Final = "active"


def reassignment_request(targets: Mapping[PartitionName, Sequence[int] | None]) -> AlterPartitionReassignmentsRequest:
    """The request for partitions to have these replicas; None: to stop moving."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, number), replicas in targets.items():
        wanted = None if replicas is None else list(replicas)
        topics.setdefault(topic, []).append(ReassignablePartition(partition_index=number, replicas=wanted))
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


class MoveRun:
    """Moves, and how far they are. Where the watching ends early, what was begun goes on by itself.

    Attributes:
        waiting: the targets of moves that are not known to be begun. asked: those of them that were asked for, without
            an answer: they may be. under_way: begun, or open before, and not ended. ended: how many have. refused: a
            sentence for each that the controller refused.
    """

    def __init__(
        self,
        moves: Mapping[PartitionName, Sequence[int]],
        *,
        awaited: Collection[PartitionName] = (),
        at_once: int = AT_ONCE_DEFAULT,
        stall_s: float = _STALL_S,
    ) -> None:
        """``awaited``: partitions that are on their way already, and are waited for too.

        ``at_once``: reassignments that may be open, those of others included. ``stall_s``: seconds.
        """
        self._at_once = min(at_once, RECORDS_PER_OPERATION_MAX)
        self._stall_s = stall_s
        self.waiting = dict(moves)
        self.asked: set[PartitionName] = set()
        self.under_way = set(awaited)
        self.ended = 0
        self.refused: dict[PartitionName, str] = {}
        #: When each that is under way was first seen to be.
        self._since: dict[PartitionName, float] = {}

    @property
    def total(self) -> int:
        """All of them."""
        return len(self.waiting) + len(self.under_way) + self.ended + len(self.refused)

    @property
    def left_words(self) -> str:
        """The future of those that have not ended, where nobody watches any more."""
        unknown = f"asked for without an answer: {len(self.asked):,}, " if self.asked else ""
        return (
            f"moves under way, which go on by themselves: {len(self.under_way):,}, {unknown}"
            f"not begun: {len(self.waiting) - len(self.asked):,}"
        )

    async def carry_out(self, client: ControllerClient) -> None:
        """Begin and watch until nothing is left, with words on standard error.

        Raises:
            As the client's methods, where a question, or all of a request, is refused.
        """
        with MoveProgress() as progress:
            while True:
                open_now = await self._look(client)
                if self.waiting and len(open_now) < self._at_once:
                    await self._begin(client, self._at_once - len(open_now))
                stalls = await self._stalls(client, open_now)
                others = self._others(open_now)
                progress.show(self.ended, self.total - len(self.refused), len(self.under_way), stalls, others)
                if not self.waiting and not self.under_way:
                    return
                await asyncio.sleep(_LOOK_S)

    async def _look(self, client: ControllerClient) -> dict[PartitionName, OngoingPartitionReassignment]:
        listed = await client.list_partition_reassignments(is_linearizable=True)
        open_now = {(topic.name, one.partition_index): one for topic in listed.topics for one in topic.partitions}
        over = self.under_way - open_now.keys()
        self.ended += len(over)
        self.under_way -= over
        now = asyncio.get_running_loop().time()
        self._since = {name: self._since.get(name, now) for name in self.under_way}
        return open_now

    def _others(self, open_now: Collection[PartitionName]) -> list[str]:
        """The moves of others that are all that is waited for; none where a move of these is under way or may begin."""
        if self.under_way or not self.waiting or len(open_now) < self._at_once:
            return []
        return [f"{topic}-{number}" for topic, number in sorted(open_now)]

    async def _begin(self, client: ControllerClient, count: int) -> None:
        chosen = dict(islice(self.waiting.items(), count))
        # Where it is not known whether it was done they are asked for again: the same target twice is no change.
        with suppress(OutcomeUnknown):
            await answered(self._ask_for(client, chosen))

    async def _ask_for(self, client: ControllerClient, chosen: Mapping[PartitionName, Sequence[int]]) -> None:
        self.asked |= chosen.keys()
        try:
            reply = await client.alter_partition_reassignments(reassignment_request(chosen))
        except OutcomeUnknown:
            raise
        except QuorateError:
            self.asked -= chosen.keys()
            raise
        self.asked -= chosen.keys()
        for topic in reply.responses:
            for one in topic.partitions:
                name = (topic.name, one.partition_index)
                self.waiting.pop(name, None)
                if one.error_code is ErrorCode.NONE:
                    self.under_way.add(name)
                else:
                    self.refused[name] = f"{one.error_message or 'refused'} ({one.error_code.name})"

    async def _stalls(
        self, client: ControllerClient, open_now: Mapping[PartitionName, OngoingPartitionReassignment]
    ) -> list[Stall]:
        """The moves that take long, or cannot go on, by the brokers that they wait for."""
        now = asyncio.get_running_loop().time()
        least_s = min(self._stall_s, _STALL_BY_BROKER_S)
        open_s = {name: now - since for name, since in self._since.items() if now - since >= least_s}
        if not open_s:
            return []
        states = {broker.id: broker.state for broker in (await client.describe_brokers()).brokers}
        waits: dict[int, list[PartitionName]] = {}
        for name in open_s.keys() & open_now.keys():
            for broker in open_now[name].adding_replicas:
                if open_s[name] >= self._stall_s or states.get(broker) != _ACTIVE:
                    waits.setdefault(broker, []).append(name)
        return [
            Stall(broker, states.get(broker, "unregistered"), [f"{topic}-{number}" for topic, number in sorted(names)])
            for broker, names in sorted(waits.items())
        ]
