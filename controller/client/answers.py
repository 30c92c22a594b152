"""The client's questions about what may be done, and what would come of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.controller.api.answers.answer_models import (
    CanStopReply,
    StopManner,
    WhatIfReply,
    WhatIfRequest,
    WhatIfStep,
)
from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.api.answers.plan_models import FactsReply, PlannedChange
from quorate.controller.client.access import Read
from quorate.metadata_log.arguments import checked_calls

_CAN_STOP: Final = "/v1/answers/can-stop"


@checked_calls
class AnswerClient:
    """A part of ``client.client.ControllerClient``, and raises what that does."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def can_stop_brokers(
        self, broker_ids: Sequence[int], manner: StopManner = "shutdown", limit: int = 100
    ) -> CanStopReply:
        """Whether brokers may be stopped, in this order; ``limit``: partitions that each reason names at most.

        Raises:
            ApiError: BROKER_ID_NOT_REGISTERED.
        """
        wanted: dict[str, str | int] = {"brokers": ",".join(map(str, broker_ids)), "manner": manner, "limit": limit}
        return await self._read(_CAN_STOP, CanStopReply, wanted)

    async def can_stop_controllers(self, node_ids: Sequence[int]) -> CanStopReply:
        """Whether controllers may be stopped.

        Raises:
            ApiError: INVALID_REQUEST, one is no voter, or an old state was asked about.
        """
        return await self._read(_CAN_STOP, CanStopReply, {"controllers": ",".join(map(str, node_ids))})

    async def explain(
        self,
        *,
        topic: str = "",
        partition: int | None = None,
        broker: int | None = None,
        controller: int | None = None,
        limit: int = 20,
    ) -> ExplainReply:
        """The things that are wrong, why, and what could be done.

        In the cluster, a topic, a partition with its reassignment, on a broker, or with a controller: one of them.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION; BROKER_ID_NOT_REGISTERED; INVALID_REQUEST, there is no such
                controller, or an old state was asked about it.
        """
        named = {
            "topic": topic or None, "partition": partition, "broker": broker, "controller": controller, "limit": limit
        }  # fmt: skip
        given = {name: value for name, value in named.items() if value is not None}
        return await self._read("/v1/answers/explain", ExplainReply, given)

    async def facts(self, change: PlannedChange) -> FactsReply:
        """The facts that a change goes by, as they are now. It does not happen. Linearizable.

        Raises:
            ApiError: INVALID_REQUEST, an election that names no partition; POLICY_VIOLATION, there are too many.
        """
        return await self._read("/v1/answers/facts", FactsReply, {"consistency": "linearizable"}, change)

    async def what_if(self, steps: Sequence[WhatIfStep]) -> WhatIfReply:
        """The status before and after these events. They do not happen.

        Raises:
            ApiError: what refuses one of them, with its place.
        """
        return await self._read("/v1/answers/what-if", WhatIfReply, body=WhatIfRequest(steps=list(steps)))
