"""The writes under which something is exchanged, and what is expected of them: nobody notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from quorate.scripts.drills.drill import healthy_again, outage
from quorate.scripts.drills.environment import DrillEnvironment
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.tour.writes import WriteStream

#: Streams of writes beside the one that every drill has.
_STREAMS: Final = 4

_REFUSED: Final = Expectation(name="refused_writes", meaning="writes that were refused or failed", at_most=0)
_ELECTIONS: Final = Expectation(name="elections", meaning="epochs that began meanwhile", at_most=0)
_LET_IN: Final = Expectation(name="old_ones_let_in", meaning="processes that take what is old", at_most=0)
#: Of every exchange.
UNNOTICED: Final = (outage(1_000), healthy_again(20_000), _REFUSED, _ELECTIONS)
#: Of one after which what was exchanged opens nothing.
EXPECTED: Final = (*UNNOTICED, _LET_IN)


@asynccontextmanager
async def under_writes(environment: DrillEnvironment) -> AsyncIterator[None]:
    """Write by several streams, and measure that none of them, and no voter, noticed anything."""
    begun, epoch = time.monotonic(), (await environment.status()).quorum.epoch
    client = environment.cluster.client
    streams = [WriteStream(client, f"{environment.prefix}-more{number}") for number in range(_STREAMS)]
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for stream in streams:
            group.create_task(stream.run(stop))
        try:
            yield
        finally:
            stop.set()
    everybody = [*streams, *environment.load.streams]
    environment.measure("refused_writes", sum(stream.refused for stream in everybody))
    environment.measure("elections", (await environment.status()).quorum.epoch - epoch)
    written = sum(len(stream.times) for stream in everybody)
    environment.noted["writes_per_s"] = round(written / (time.monotonic() - begun))
    names = await environment.cluster.topic_names()
    environment.measure("lost_writes", sum(name not in names for one in streams for name in one.acknowledged))


async def restart_a_standby(environment: DrillEnvironment) -> float:
    """Restart one: it makes new connections, by what is new alone."""
    node = environment.controllers[await environment.standby()]
    await environment.stop(node)
    at = await environment.restart(node)
    await environment.until_voting()
    return at
