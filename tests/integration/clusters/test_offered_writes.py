"""Writes that drills offer at a rate: every one is made or counted as refused, and can be looked for and taken away."""

from __future__ import annotations

from collections.abc import Callable

from quorate import testing
from quorate.client import ControllerClient, TlsFiles
from quorate.scripts.drills.offered import RATE, OfferedWrites, remove_written, written

SECONDS = 0.2


async def offered(client_of: Callable[[int], ControllerClient]) -> OfferedWrites:
    writes = OfferedWrites(client_of, "mine")
    writes.end(at_least_s=SECONDS)
    await writes.run()
    return writes


async def test_every_write_that_was_due_is_made_and_none_of_others_is_taken_away() -> None:
    async with testing.cluster() as cluster, cluster.client() as client:
        writes = await offered(lambda _: cluster.client())

        assert writes.offered == len(writes.acknowledged) >= SECONDS * RATE
        assert (writes.refused, 0 < writes.per_s <= RATE * 1.1) == (0, True)
        assert await written(client, "mine") == set(writes.acknowledged)
        await remove_written(client, "mine-1")
        assert await written(client, "mine") == {name for name in writes.acknowledged if not name.startswith("mine-1")}


async def test_writes_that_are_refused_are_counted_and_not_there() -> None:
    async with testing.cluster(tls=True) as cluster, cluster.client() as admin:
        tls = TlsFiles(cluster.client_certificate("ana")).as_client
        writes = await offered(lambda _: ControllerClient(cluster.urls, tls=tls))

        assert writes.offered == writes.refused >= SECONDS * RATE
        assert (writes.acknowledged, writes.per_s) == ([], 0.0)
        assert await written(admin, "mine") == set()
