"""Moves that are taken back, of which the controllers refuse some."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from quorate.controller.api.answers.plan_models import Fact
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResult,
    ReassignableTopicResult,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.cli.plans.taking_back import take_back


class _Cluster:
    """Partition 0 of orders cannot be taken back; the others can, and somebody has moved 1 elsewhere since."""

    def __init__(self) -> None:
        self.answers = SimpleNamespace(facts=self._facts)

    async def list_partition_reassignments(self, *, is_linearizable: bool) -> ListPartitionReassignmentsResponse:
        assert is_linearizable
        found = [
            OngoingPartitionReassignment(
                partition_index=n, replicas=[13, 12, 11], adding_replicas=[13], removing_replicas=[11]
            )
            for n in range(3)
        ]
        return ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment(name="orders", partitions=found)])

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        codes = {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
        results = [
            ReassignablePartitionResult(
                partition_index=one.partition_index,
                error_code=codes.get(one.partition_index, ErrorCode.NONE),
                error_message=None,
            )
            for topic in request.topics
            for one in topic.partitions
        ]
        return AlterPartitionReassignmentsResponse(
            responses=[ReassignableTopicResult(name="orders", partitions=results)]
        )

    async def _facts(self, change: Any) -> Any:
        places = {
            1: {"replicas": [12, 11, 14], "adding": [14], "removing": []},
            2: {"replicas": [11, 12], "adding": [], "removing": []},
        }
        (topic,) = change.alter_partition_reassignments.topics
        numbers = [one.partition_index for one in topic.partitions]
        assert 0 not in numbers
        facts = [Fact.model_validate({"about": f"partition orders-{n}", "values": places[n]}) for n in numbers]
        return SimpleNamespace(facts=facts)


async def test_what_is_not_taken_back_is_named_and_what_others_moved_is_left_to_them() -> None:
    names = [("orders", number) for number in range(3)]
    told = await take_back(cast(ControllerClient, _Cluster()), names, {name: [11, 12] for name in names})
    assert told == [
        "moves that were not over, and were taken back: 2",
        "orders-0 was not taken back: refused (INVALID_REPLICA_ASSIGNMENT)",
    ]
