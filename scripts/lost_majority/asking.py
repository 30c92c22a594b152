"""Asks those who still answer what they know: controllers, and brokers that followed the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quorate.broker.http.replies import ProcessReply
from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.api.errors import is_no_access
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import Connection, NoAnswer, NotSent, Request, is_silence
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.targets import controller_url
from quorate.controller.client.ways import Ways
from quorate.metadata_log.errors import ApiError
from quorate.scripts.logins.named_login import is_login_named
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.judgement import RunningController
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.places.controllers import LOCAL_DIRECTORY, find_tls, is_insecure

_CONTROLLER_TIMEOUT_MS: Final = 1_000.0
_BROKER_TIMEOUT_MS: Final = 2_000.0


def ask_controllers(urls: Sequence[str], secret: bytes | None, local: str | Path | None) -> list[RunningController]:
    """The answers of those of the controllers that give one within a second.

    ``local``: directory of the local cluster, if they are of one.

    Raises:
        RecoveryError: one is there, and does not tell whoever asks what it knows: a majority may be running.
    """
    if not urls:
        return []

    async def run() -> list[RunningController]:
        async with client_of(urls, secret, local=Path(local or LOCAL_DIRECTORY)) as client:
            asked = await asyncio.gather(*(_ask(client, controller_url(url)) for url in urls))
        return [answer for answer in asked if answer is not None]

    return asyncio.run(run())


async def _ask(client: ControllerClient, url: str) -> RunningController | None:
    try:
        return _answer(url, await client.status_of(url, _CONTROLLER_TIMEOUT_MS))
    except NoAnswer:
        return None
    except (ApiError, NotSent) as error:
        if isinstance(error, NotSent) and is_silence(error):
            return None
        raise RecoveryError(
            f"{url}: what is there does not say what it knows ({error}), so a majority may be running; "
            "ask with the secret or certificates of the cluster, or stop it"
        ) from error


def _answer(url: str, status: StatusReply) -> RunningController:
    quorum = status.quorum
    return RunningController(
        url=url,
        node_id=quorum.observed_by,
        epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        active_id=quorum.active_id,
    )


def ask_brokers(urls: Sequence[str], secret: bytes | None, local: Path) -> list[RunningController]:
    """The offsets to which broker processes have followed the log: what they applied was committed.

    ``local``: as for ``ask_controllers``.

    Raises:
        RecoveryError: one does not answer, or not as a broker does, or refuses whoever asks. It was named to be heard.
        SecretInPlaintext: as ``ControllerClient``.
    """
    if not urls:
        return []
    tls = find_tls(urls, local, is_administrator=secret is None and not is_login_named())
    session = PendingSession(secret, None)
    ways = Ways(session, tls, None, None, is_secret=secret is not None and not is_insecure())

    async def run() -> list[RunningController]:
        try:
            return [await _ask_broker(ways.connect(url)) for url in urls]
        finally:
            await session.close()

    return asyncio.run(run())


async def _ask_broker(connection: Connection) -> RunningController:
    try:
        reply = (await connection.send(Request("GET", "/v1/process", _BROKER_TIMEOUT_MS, is_for_brokers=True))).model(
            ProcessReply
        )
    except (ApiError, NotSent, NoAnswer) as error:
        if isinstance(error, ApiError) and is_no_access(error):
            raise RecoveryError(
                f"{connection.url}: the broker there does not say how far it is ({error}); leave it out, or ask with a "
                "token or certificate that it knows"
            ) from error
        raise RecoveryError(
            f"{connection.url}: no broker answers there ({error}); leave it out, or name its HTTP address"
        ) from error
    return RunningController(
        url=connection.url,
        node_id=reply.brokers[0].broker_id if reply.brokers else -1,
        epoch=reply.following.epoch or 0,
        high_watermark=reply.following.applied_offset,
        active_id=reply.following.leader_id,
    )
