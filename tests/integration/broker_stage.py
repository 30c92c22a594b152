"""Broker hosts in this process, over real sockets to real controllers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import aiohttp

from quorate.broker.assembly import assemble
from quorate.broker.environment import BrokerMachine
from quorate.broker.host import BrokerHost
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.machine import on_this_machine, real_machine
from quorate.broker.process import tls_of_http
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.settings import BrokerSettings, FeedSettings, LifecycleSettings, ReplicaSettings
from tests.guards.sound_images import watch
from tests.integration.http_stage import Stage, stage
from tests.waiting import PATIENCE_S, eventually

_uuids = itertools.count(5_000)


def seeded_machine(seed: int = 1) -> BrokerMachine:
    """Real time, seeded chance, ids in a row."""
    return replace(real_machine(), draw=Random(seed).random, new_uuid=lambda: next(_uuids).to_bytes(16, "big"))


@dataclass
class Played:
    """A host at work."""

    host: BrokerHost
    endpoint: Endpoint
    session: aiohttp.ClientSession
    task: asyncio.Task[None]

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of an answer of its HTTP API."""
        async with self.session.get(f"http://{self.endpoint.host}:{self.endpoint.port}{path}") as answer:
            return answer.status, await answer.json()

    async def ready(self) -> None:
        """Until every broker here is."""

        async def look() -> bool:
            if self.task.done():
                self.task.result()
            return self.host.is_ready

        await eventually(look, f"brokers {self.host.settings.ids} are ready")

    async def leave(self) -> None:
        """Controlled shutdown, to its end."""
        self.host.request_stop()
        async with asyncio.timeout(PATIENCE_S):
            await self.task


def broker_settings(ids: Sequence[int] | str, urls: Sequence[str], **more: Any) -> BrokerSettings:
    """Settings with short intervals."""
    timing = {
        "lifecycle": LifecycleSettings(heartbeat_interval_ms=40, request_timeout_ms=3_000),
        "feed": FeedSettings(wait_ms=200, retry_max_ms=100),
    }
    values: dict[str, Any] = {"ids": ids, "controllers": list(urls), **timing, **more}
    return BrokerSettings(**values)


@asynccontextmanager
async def playing(
    ids: Sequence[int] | str,
    urls: Sequence[str],
    publishers: Sequence[MetadataPublisher] = (),
    port: int = 0,
    replicas: ReplicaManager | None = None,
    replicas_settings: ReplicaSettings | None = None,
    own_secret: bytes | None = None,
    **more: Any,
) -> AsyncIterator[Played]:
    """A host with its HTTP API; it is killed at the end unless it has left before."""
    if replicas_settings is not None:
        more["replicas"] = replicas_settings
    settings = broker_settings(ids, urls, **more)
    files = settings.tls.load()
    async with on_this_machine(settings, None, files) as machine, aiohttp.ClientSession() as session:
        environment = replace(machine, machine=seeded_machine())
        secrets = None if own_secret is None else lambda: (own_secret,)
        assembly = assemble(settings, environment, publishers, replicas, secrets)
        host, http = assembly.host, assembly.http
        watch(lambda: host.publishers.image)
        endpoint = await http.start("127.0.0.1", port, tls_of_http(settings, files))
        task = asyncio.create_task(host.run(endpoint))
        try:
            yield Played(host, endpoint, session, task)
        finally:
            task.cancel()
            await asyncio.wait({task})
            await http.stop()


@asynccontextmanager
async def stage_with_short_sessions() -> AsyncIterator[Stage]:
    """One controller that fences a broker after two silent seconds."""
    async with stage(1, active=None) as built:
        role = built.members[1].role
        role.config = replace(role.config, session_timeout_ms=2_000)
        await built.elect(1)
        yield built
