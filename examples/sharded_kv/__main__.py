"""A worker as a process: ``python -m examples.sharded_kv ID DIRECTORY CONTROLLERS``, until it is ended."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

import aiohttp

from examples.sharded_kv.service import LISTENER, KvReplicas, serving, store_in
from quorate.worker import BrokerSettings, FeedSettings, LifecycleSettings, worker

HOST = "127.0.0.1"


async def play(broker_id: int, directory: Path, controllers: list[str]) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with aiohttp.ClientSession() as session:
        replicas = KvReplicas(broker_id, store_in(directory), session)
        async with serving(replicas, HOST) as port:
            settings = BrokerSettings(
                ids=(broker_id,),
                controllers=tuple(controllers),
                listeners=(f"{LISTENER}://{HOST}:{port}",),
                last_run_file=directory / "last-run.json",
                lifecycle=LifecycleSettings(heartbeat_interval_ms=200, request_timeout_ms=1_000),
                feed=FeedSettings(wait_ms=200, retry_max_ms=200),
            )
            async with worker(settings, replicas) as replicas.worker:
                await stop.wait()
            await replicas.end()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(play(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(",")))
