"""Answers from the controllers of a cluster, asked before a directory is given the right to vote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.controller.api.resources import QuorumReply
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent, is_silence
from quorate.controller.client.targets import controller_url
from quorate.controller.identity.seals import Seal
from quorate.metadata_log.errors import ApiError

#: A controller that takes a connection and is slow to answer runs all the same.
_TIMEOUT_MS: Final = 3_000.0


@dataclass(frozen=True, slots=True)
class FoundController:
    """One address, and what came of asking there."""

    url: str
    #: What it says of its quorum; None where no answer came back.
    quorum: QuorumReply | None
    #: The cluster whose controller it says to be; empty where it says nothing.
    cluster_id: str = ""
    #: Why no answer came back; empty where one did, and where nothing takes a connection there.
    trouble: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether nothing takes a connection there."""
        return self.quorum is None and not self.trouble


def ask_each(
    urls: Sequence[str],
    secret: bytes | None,
    tls: TlsContexts | None = None,
    *,
    seal: Seal | None = None,
    insecure: bool,
) -> list[FoundController]:
    """Ask all of them at once, each for what it knows itself. ``seal``, ``insecure``: as for ``ControllerClient``.

    Raises:
        InvalidUrl: one of the addresses is none. SecretInPlaintext: as ``ControllerClient``.
    """

    async def run() -> list[FoundController]:
        async with ControllerClient(urls, shared_secret=secret, tls=tls, seal=seal, insecure=insecure) as client:
            return await asyncio.gather(*(_ask(client, controller_url(url)) for url in urls))

    return asyncio.run(run()) if urls else []


async def _ask(client: ControllerClient, url: str) -> FoundController:
    try:
        node, quorum = await client.quorum_of(url, _TIMEOUT_MS)
    except NotSent as error:
        return FoundController(url, None, trouble="" if is_silence(error) else str(error))
    except (ApiError, NoAnswer) as error:
        return FoundController(url, None, trouble=str(error) or type(error).__name__)
    return FoundController(url, quorum, node.cluster_id)
