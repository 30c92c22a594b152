"""A local cluster of real processes for the time of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.ports import free_ports

#: Settings of controllers, for tests of which elections are no part: on a loaded machine a leader may seem dead.
PATIENT: Final = {"QUORUM__ELECTION_TIMEOUT_MIN_MS": "5000", "QUORUM__ELECTION_TIMEOUT_MAX_MS": "10000"}
_READY_S: Final = 60
_END_S: Final = 30


@asynccontextmanager
async def running_cluster(
    directory: Path,
    controllers: int,
    brokers: int,
    options: LocalOptions | None = None,
    *,
    is_secured: bool = True,
) -> AsyncIterator[LocalCluster]:
    """Controllers and brokers, ready; they are killed afterwards. As `up` makes them, or as with its --insecure."""
    ports = Ports.of(free_ports(2 * controllers + brokers))
    plan = make_fresh(directory, ports, controllers, brokers, is_secured=is_secured)
    made = LocalCluster(directory, plan, options)
    try:
        await made.start()
        await made.wait_for_controllers(_READY_S)
        await made.wait_for_brokers(_READY_S)
        yield made
    finally:
        for process in made.processes:
            process.kill()
            await process.wait(_END_S)
        await made.client.close()
