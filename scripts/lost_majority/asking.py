"""Asks those who still answer what they know: controllers, and brokers that followed the log."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError

from quorate.controller.api.resources import StatusReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent, controller_url, is_silence
from quorate.metadata_log.errors import ApiError
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.judgement import RunningController
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.connecting import LOCAL_DIRECTORY, find_tls

_CONTROLLER_TIMEOUT_MS: Final = 1_000.0
_BROKER_TIMEOUT_S: Final = 2.0
_BROKER_BYTES_MAX: Final = 16 * 1024 * 1024


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


def ask_brokers(urls: Sequence[str], local: Path) -> list[RunningController]:
    """The offsets to which broker processes have followed the log: what they applied was committed.

    ``local``: as for ``ask_controllers``.

    Raises:
        RecoveryError: one does not answer, or not as a broker does. It was named to be heard.
    """
    tls = find_tls(urls, local)
    return [_ask_broker(url, None if tls is None else tls()) for url in urls]


def _ask_broker(url: str, tls: ssl.SSLContext | None) -> RunningController:
    try:
        with urllib.request.urlopen(f"{url}/v1/process", timeout=_BROKER_TIMEOUT_S, context=tls) as reply:
            document: Any = json.loads(reply.read(_BROKER_BYTES_MAX))
        following, brokers = document["following"], document["brokers"]
        return RunningController(
            url=url,
            node_id=int(brokers[0]["broker_id"]) if brokers else -1,
            epoch=int(following["epoch"] or 0),
            high_watermark=int(following["applied_offset"]),
            active_id=following["leader_id"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        why = reason.strerror or reason if isinstance(reason, OSError) else reason
        raise RecoveryError(
            f"{url}: no broker answers there ({why}); leave it out, or name its HTTP address"
        ) from error
