"""One broker process: its client, its host, its HTTP API and its signals, put together."""

from __future__ import annotations

import asyncio
import random
import signal
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import structlog

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.environment import Surroundings
from quorate.broker.host import BrokerHost, BrokerReadiness
from quorate.broker.http.http_api import BrokerHttp
from quorate.broker.metadata.digest_watch import DigestWatch
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.replicas.peers import HttpPeers
from quorate.broker.settings import BrokerSettings
from quorate.metadata_log.ids import Uuid, is_reserved_uuid

log = structlog.get_logger(__name__)


async def run_broker_process(
    settings: BrokerSettings,
    shared_secret: bytes | None = None,
    publishers: Sequence[MetadataPublisher] = (),
    replicas: ReplicaManager | None = None,
) -> list[BrokerReadiness]:
    """Play the brokers of ``settings`` until all of them are over, or a signal made them leave. How each of them ended.

    SIGTERM and SIGINT begin a controlled shutdown; the second one ends it at once.

    Args:
        replicas: what decides who is in sync; None: the rehearsal's model, which moves no data. A service gives its
            own (``broker.replicas.service.ServiceReplicas``).

    Raises:
        QuorateError: the process could not start, or must not go on (see ``BrokerHost.run``, ``BrokerHttp.start``).
    """
    timeout_ms = settings.lifecycle.request_timeout_ms
    async with (
        connect_controllers(settings.controllers, shared_secret, timeout_ms, settings.ids) as controllers,
        connect_peers(shared_secret, settings.replicas.timeout_ms) as peers,
    ):
        surroundings = real_surroundings()
        host = BrokerHost(settings, controllers.feeds, controllers.rpc, surroundings, peers, publishers, replicas)
        http = BrokerHttp(host, shared_secret)
        watch = DigestWatch(host.digests, controllers.feeds, host.loader.feed_name, surroundings)
        endpoint = await http.start(settings.http.host, settings.http.port)
        try:
            with _stop_signals(host):
                await host.run(endpoint, watch)
        finally:
            await http.stop()
        return host.readiness()


@asynccontextmanager
async def connect_peers(shared_secret: bytes | None, timeout_ms: float) -> AsyncIterator[HttpPeers]:
    """Calls to other broker processes, over connections that are made when they are needed and closed at the end."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session:
        yield HttpPeers(lambda: session, shared_secret, timeout_ms)


def real_surroundings() -> Surroundings:
    """This machine's clock and chance."""
    return Surroundings(
        now_ms=lambda: time.monotonic() * 1000,
        wall_ms=lambda: time.time() * 1000,
        sleep_ms=lambda wait_ms: asyncio.sleep(wait_ms / 1000),
        draw=random.Random().random,
        new_uuid=_new_uuid,
    )


def _new_uuid() -> Uuid:
    while is_reserved_uuid(made := uuid.uuid4().bytes):
        continue
    return made


@contextmanager
def _stop_signals(host: BrokerHost) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        log.info("process.signal", signal=number.name)
        host.request_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
