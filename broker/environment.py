"""Time, chance and ids: what the rest of the package is given instead of reaching for it; and what looks at times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from quorate.metadata_log.ids import Uuid


@dataclass(frozen=True, slots=True)
class BrokerMachine:
    """The clock, the waits, the chance and the ids of a process."""

    #: Monotonic milliseconds.
    now_ms: Callable[[], float]
    #: Milliseconds since 1970.
    wall_ms: Callable[[], float]
    sleep_ms: Callable[[float], Awaitable[None]]
    #: Numbers in [0, 1), for jitter.
    draw: Callable[[], float]
    new_uuid: Callable[[], Uuid]


class HostWatch(Protocol):
    """Something that looks now and then while brokers are played, and never ends by itself."""

    async def run(self) -> None:
        """Look; what it raises ends the process."""
