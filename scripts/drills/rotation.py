"""The writes under which something is exchanged, and what is expected of them: nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.scripts.drills.drill import healthy_again, outage
from quorate.scripts.drills.environment import DrillEnvironment
from quorate.scripts.drills.offered import RATE, OfferedWrites, written
from quorate.scripts.drills.outcome import Expectation

#: For so long (s) writes are offered at least, however soon the exchange is over.
_WRITTEN_S: Final = 5.0
#: A write may wait for so long (s).
_OUTAGE_S: Final = 1.0
#: So few writes a second are acknowledged at least, where the last of those offered waits for as long as it may.
_PER_S_MIN: Final = round(RATE * _WRITTEN_S / (_WRITTEN_S + _OUTAGE_S))

_REFUSED: Final = Expectation(name="refused_writes", meaning="writes that were refused or failed", at_most=0)
_UNACKNOWLEDGED: Final = Expectation(
    name="unacknowledged_writes", meaning="writes that were offered and not acknowledged", at_most=0
)
_SHORT: Final = Expectation(
    name="writes_short_per_s",
    meaning=f"acknowledged writes a second that are short of the {RATE} offered",
    at_most=RATE - _PER_S_MIN,
)
_ELECTIONS: Final = Expectation(name="elections", meaning="epochs that began meanwhile", at_most=0)
_LET_IN: Final = Expectation(name="old_ones_let_in", meaning="processes that take what is old", at_most=0)
#: Of every exchange.
UNNOTICED: Final = (outage(1_000 * _OUTAGE_S), healthy_again(20_000), _REFUSED, _UNACKNOWLEDGED, _SHORT, _ELECTIONS)
#: Of one after which what was exchanged opens nothing.
EXPECTED: Final = (*UNNOTICED, _LET_IN)


@asynccontextmanager
async def under_writes(
    environment: DrillEnvironment, client_to: Callable[[list[str]], ControllerClient] | None = None
) -> AsyncIterator[None]:
    """Offer writes, and measure that all of them are acknowledged and kept, and that no voter noticed anything.

    Args:
        client_to: makes a client of these controllers; None: one with the administrator's certificate.
    """
    urls, tls = list(environment.cluster.members.controller_urls), environment.cluster.tls

    def client_of(writer: int) -> ControllerClient:
        """Of each controller, in turn: what it does not decide itself it passes on, sealed."""
        first = writer % len(urls)
        asked = urls[first:] + urls[:first]
        return ControllerClient(asked, tls=tls) if client_to is None else client_to(asked)

    epoch = (await environment.status()).quorum.epoch
    writes = OfferedWrites(client_of, environment.prefix)
    async with asyncio.TaskGroup() as group:
        group.create_task(writes.run())
        yield
        writes.end(_WRITTEN_S)
    environment.measure("elections", (await environment.status()).quorum.epoch - epoch)
    await _measure(environment, writes)


async def _measure(environment: DrillEnvironment, writes: OfferedWrites) -> None:
    """Measure the writes that were offered, and the one stream that every drill has."""
    held = await written(environment.cluster.client, environment.prefix)
    environment.measure("lost_writes", sum(name not in held for name in writes.acknowledged))
    environment.measure("refused_writes", writes.refused + sum(one.refused for one in environment.load.streams))
    environment.measure("unacknowledged_writes", writes.offered - len(writes.acknowledged))
    environment.measure("writes_short_per_s", RATE - writes.per_s)
    environment.noted["offered_writes"] = writes.offered
    environment.noted["acknowledged_writes_per_s"] = round(writes.per_s)


async def restart_a_standby(environment: DrillEnvironment) -> float:
    """Restart one: it makes new connections, by what is new alone."""
    node = environment.controllers[await environment.standby()]
    await environment.stop(node)
    at = await environment.restart(node)
    await environment.until_voting()
    return at
