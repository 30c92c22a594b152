"""One broker process: its client, its host, its HTTP API and its signals, put together."""

from __future__ import annotations

import asyncio
import random
import signal
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from broker.controllers import connect_controllers
from broker.digest_watch import DigestWatch
from broker.host import BrokerHost, BrokerReadiness
from broker.http_api import BrokerHttp
from broker.publisher import MetadataPublisher
from broker.settings import BrokerSettings
from broker.surroundings import Surroundings
from metadata_log.ids import Uuid, is_reserved_uuid

log = structlog.get_logger(__name__)


async def run_broker_process(
    settings: BrokerSettings, shared_secret: bytes | None = None, publishers: Sequence[MetadataPublisher] = ()
) -> list[BrokerReadiness]:
    """Play the brokers of ``settings`` until all of them are over, or a signal made them leave. How each of them ended.

    SIGTERM and SIGINT begin a controlled shutdown; the second one ends it at once.

    Raises:
        QuorateError: the process could not start, or must not go on (see ``BrokerHost.run``, ``BrokerHttp.start``).
    """
    timeout_ms = settings.lifecycle.request_timeout_ms
    async with connect_controllers(settings.controllers, shared_secret, timeout_ms, settings.ids) as controllers:
        host = BrokerHost(settings, controllers.feeds, controllers.rpc, real_surroundings(), publishers)
        http = BrokerHttp(host)
        watch = DigestWatch(host.digests, controllers.feeds, host.loader.feed_name, real_surroundings())
        endpoint = await http.start(settings.http.host, settings.http.port)
        try:
            with _stop_signals(host):
                await host.run(endpoint, watch)
        finally:
            await http.stop()
        return host.readiness()


def real_surroundings() -> Surroundings:
    """This machine's clock and chance."""
    return Surroundings(
        now_ms=lambda: time.monotonic() * 1000,
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
