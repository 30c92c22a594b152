"""A stream of writes under a fault: what was acknowledged when, and what must therefore be there."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode

#: Between two attempts while nobody takes writes.
_RETRY_S: Final = 0.005


@dataclass(slots=True)
class WriteStream:
    """Creates one small topic after the other, and keeps what the controllers said.

    ``pause_s``: between an acknowledgement and the next write.
    """

    client: ControllerClient
    prefix: str
    replication_factor: int = 2
    pause_s: float = 0.0
    acknowledged: list[str] = field(default_factory=list)
    #: (monotonic time, s) of each acknowledgement.
    times: list[float] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop. A write whose outcome is unknown is not repeated: the next one has another name."""
        number = 0
        while not stop.is_set():
            name = f"{self.prefix}-{number}"
            number += 1
            try:
                reply = await self.client.create_topics(
                    CreateTopicsRequest(
                        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=self.replication_factor)]
                    )
                )
            except ApiError as error:
                self.refused += 1
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    self.unknown.append(name)
                await asyncio.sleep(_RETRY_S)
                continue
            if reply.topics[0].error_code != ErrorCode.NONE:
                self.refused += 1
                await asyncio.sleep(_RETRY_S)
                continue
            self.acknowledged.append(name)
            self.times.append(time.monotonic())
            if self.pause_s:
                await asyncio.sleep(self.pause_s)

    def longest_gap_ms(self, since: float) -> float:
        """Longest time (ms) without an acknowledgement after a moment: what a client saw of the fault."""
        times = [since, *(t for t in self.times if t >= since)]
        gaps = [(later - earlier) * 1000 for earlier, later in pairwise(times)]
        return max(gaps, default=float("inf"))
