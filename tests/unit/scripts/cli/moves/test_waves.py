"""Moves that are carried out in waves: what is known of them where the command ends early."""

from __future__ import annotations

import asyncio

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown, QuorateError
from quorate.scripts.cli.moves.waves import MoveRun

MOVES = {("orders", number): [1, 2] for number in range(20)}


class FailingClient(ControllerClient):
    """Has no answer but an error, at once, or after somebody pressed Ctrl-C.

    Of what it is asked for eight moves are open. The third look at them is interrupted, too.
    """

    def __init__(self, error: QuorateError, *, interrupts: bool) -> None:
        super().__init__(["http://127.0.0.1:1"])
        self._error = error
        self._interrupts = interrupts
        self.asked: list[int] = []
        self.run: asyncio.Task[None] | None = None

    async def list_partition_reassignments(
        self, *, is_linearizable: bool = False
    ) -> ListPartitionReassignmentsResponse:
        if len(self.asked) == 2 and self.run is not None:
            self.run.cancel()
        still_open = [
            OngoingPartitionReassignment(
                partition_index=number, replicas=[1, 2], adding_replicas=[2], removing_replicas=[]
            )
            for number in range(8 if self.asked else 0)
        ]
        return ListPartitionReassignmentsResponse(
            topics=[OngoingTopicReassignment(name="orders", partitions=still_open)] if still_open else []
        )

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        self.asked.append(sum(len(topic.partitions) for topic in request.topics))
        if self._interrupts and self.run is not None:
            self.run.cancel()
        raise self._error


async def left_words(error: QuorateError, *, interrupts: bool) -> str:
    moves = MoveRun(MOVES, at_once=10)
    async with FailingClient(error, interrupts=interrupts) as client, asyncio.TaskGroup() as group:
        client.run = group.create_task(moves.carry_out(client))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.shield(client.run)
    return moves.left_words


async def test_moves_whose_answer_was_lost_are_not_forgotten_as_others_are_asked_for() -> None:
    words = await left_words(OutcomeUnknown("read before repeating it"), interrupts=False)
    assert words == "moves under way, which go on by themselves: 0, asked for without an answer: 10, not begun: 10"


async def test_moves_that_are_refused_after_ctrl_c_were_not_begun() -> None:
    words = await left_words(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"), interrupts=True)
    assert words == "moves under way, which go on by themselves: 0, not begun: 20"
