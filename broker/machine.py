"""This machine, as a process of brokers meets it: clock, chance, ids and connections."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.environment import BrokerMachine
from quorate.broker.host import BrokerEnvironment
from quorate.broker.publisher import LoggedFaults
from quorate.broker.replicas.peers import HttpPeers, SecuredPeerSession
from quorate.broker.settings import BrokerSettings
from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.identity.secrets import ShownSecret
from quorate.metadata_log.ids import Uuid, is_reserved_uuid
from quorate.metadata_log.steady_clock import steady_ms


@asynccontextmanager
async def on_this_machine(
    settings: BrokerSettings, shared_secret: ShownSecret, files: TlsFiles | None = None
) -> AsyncIterator[BrokerEnvironment]:
    """Connections are made when they are needed, and closed at the end.

    ``files``: those of ``settings.tls``.

    Raises:
        InvalidUrl: one of ``settings.controllers`` names no controller. SecretInPlaintext: as ``ControllerClient``.
    """
    timeout_ms = settings.lifecycle.request_timeout_ms
    tls = None if files is None else files.as_client
    async with (
        connect_controllers(
            settings.controllers, shared_secret, timeout_ms, settings.ids, tls, insecure=settings.access.insecure
        ) as controllers,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session,
    ):
        # The other processes serve as this one does.
        if files is None or not files.is_server:
            peers = HttpPeers(lambda: session, shared_secret, settings.replicas.timeout_ms)
        else:
            secured = SecuredPeerSession(session, files.as_client)
            peers = HttpPeers(lambda: secured, shared_secret, settings.replicas.timeout_ms, "https")
        yield BrokerEnvironment(real_machine(), controllers.feeds, controllers.rpc, peers, LoggedFaults())


def real_machine() -> BrokerMachine:
    """This machine's clock and chance."""
    return BrokerMachine(
        now_ms=steady_ms,
        wall_ms=lambda: time.time() * 1000,
        sleep_ms=lambda wait_ms: asyncio.sleep(wait_ms / 1000),
        draw=random.Random().random,
        new_uuid=_new_uuid,
    )


def _new_uuid() -> Uuid:
    while is_reserved_uuid(made := uuid.uuid4().bytes):
        continue
    return made
