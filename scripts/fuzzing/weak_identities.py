"""Those who are known and may do little: brokers who speak for others, or for what they once were; users who list."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

from pydantic import BaseModel

from quorate.controller.api.resources import BrokerReply
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.operations.bootstrap import FRESH_FEATURES
from quorate.controller.permissions.permission import ByItem
from quorate.controller.protocol import BrokerHeartbeatRequest, BrokerRegistrationRequest, Listener, SupportedFeature
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.fuzzing import another_user
from quorate.scripts.fuzzing.knocking import ask, knock, request

#: What is left out of their answers is nobody's who may not describe it; one resource alone is no list.
LISTS: Final = [
    route.path
    for route in ROUTES
    if route.method == "GET" and isinstance(route.permission, ByItem) and "{" not in route.path
    if route.path != "/v1/configs"
]
#: An offset that every broker has still to reach.
_FAR: Final = 2**40
#: Whatever level a feature has, it is supported.
_LEVEL_MAX: Final = 30
_SUPPORTED: Final = [
    SupportedFeature(name=name, min_supported_version=0, max_supported_version=_LEVEL_MAX)
    for name in (*(name for name, _ in FRESH_FEATURES), "kraft.version")
]
#: Of nobody, on most systems.
_NOBODY: Final = 65_534
_NOT_ROOT: Final = "not tried: only root can be another user"


class FalseBrokers:
    """Brokers of a cluster, and one whose certificate is another broker's."""

    def __init__(
        self,
        ports: Sequence[int],
        brokers: Sequence[BrokerReply],
        own: Mapping[int, ssl.SSLContext],
        foreign: ssl.SSLContext,
        cluster_id: str,
        rng: Random,
    ) -> None:
        """``own``: by broker, with a certificate of its own."""
        self._ports, self._brokers, self._own, self._foreign = ports, brokers, own, foreign
        self._cluster_id = cluster_id
        self._rng = rng

    async def heartbeat_for_another(self) -> str:
        """With the right epoch."""
        broker = self._rng.choice(self._brokers)
        return await self._post("heartbeat", self._heartbeat(broker.id, broker.epoch), self._foreign)

    async def heartbeat_of_before(self) -> str:
        """With its own certificate, and an epoch that it had or will have."""
        broker = self._rng.choice(self._brokers)
        said = self._heartbeat(broker.id, broker.epoch + self._rng.choice((-1, 1, 1_000)))
        return await self._post("heartbeat", said, self._own[broker.id])

    async def second_incarnation(self) -> str:
        """While the first one lives."""
        broker = self._rng.choice(self._brokers)
        said = BrokerRegistrationRequest(
            broker_id=broker.id,
            cluster_id=self._cluster_id,
            incarnation_id=uuid.uuid4().bytes,
            listeners=[Listener(name="PLAINTEXT", host=LOOPBACK, port=9)],
            log_dirs=[uuid.uuid4().bytes],
            features=_SUPPORTED,
        )
        return await self._post("register", said, self._own[broker.id])

    def _heartbeat(self, broker_id: int, epoch: int) -> BrokerHeartbeatRequest:
        is_ended = self._rng.random() < 0.5
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch,
            current_metadata_offset=_FAR,
            want_fence=is_ended,
            want_shut_down=not is_ended,
        )

    async def _post(self, what: str, said: BaseModel, context: ssl.SSLContext) -> str:
        body = said.model_dump_json().encode()
        return await knock(self._rng.choice(self._ports), context, request("POST", f"/v1/broker-rpc/{what}", body))


async def listed(port: int, path: str, context: ssl.SSLContext) -> str:
    """Ask for a list as somebody who may describe nothing: the status, and whether anything is on it."""
    outcome, answer = await ask(port, context, request("GET", path))
    if not outcome.startswith("2"):
        return outcome
    told = [name for name, value in answer.items() if isinstance(value, list) and value]
    told += [name for name in ("matching", "next_after") if answer.get(name)]
    return f"{outcome}, tells {' and '.join(told)}" if told else f"{outcome}, empty"


async def as_another_user(path: Path, *, gets_by_modes: bool) -> str:
    """A request at a Unix socket by a user of this machine who is not the controller's.

    ``gets_by_modes``: as if the modes of files let him.
    """
    if os.geteuid() != 0:
        return _NOT_ROOT
    arguments = [another_user.__file__, str(path), str(_NOBODY), *(["passes"] if gets_by_modes else [])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", *arguments), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return said.decode().strip() or f"it ended with {process.returncode}"
