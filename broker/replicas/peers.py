"""The other broker processes: where they are, and how one of them is spoken to.

Broker processes listen on loopback only, so nothing else is ever dialled, whatever a registration says: the message
carries the shared secret, if there is one.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import aiohttp

from quorate.broker.replicas.follower import Address
from quorate.broker.replicas.messages import FRAME_BYTES_MAX
from quorate.broker.settings import HTTP_LISTENER
from quorate.controller.identity.secrets import ShownSecret, bearer
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.loopback import is_loopback
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration, ClusterImage

#: This very process.
LOCAL: Final = "local"
#: Where messages are sent to.
FOLLOW_PATH: Final = "/v1/replicas/follow"
MSGPACK: Final = "application/msgpack"


class PeerUnreachable(QuorateError):
    """Another broker process did not answer, or not what it should."""


class PeerCalls(Protocol):
    """The calls to other processes."""

    async def exchange(self, address: Address, message: bytes) -> bytes:
        """Send a message, and return its answer.

        Raises:
            PeerUnreachable: there is none in time.
        """


class PeerAnswer(Protocol):
    """The part of an ``aiohttp.ClientResponse`` that is used."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes: ...


class PeerSession(Protocol):
    """The part of an ``aiohttp.ClientSession`` that is used."""

    def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes,
        headers: Mapping[str, str],
        allow_redirects: bool,
        timeout: aiohttp.ClientTimeout,
    ) -> AbstractAsyncContextManager[PeerAnswer]: ...


class SecuredPeerSession:
    """A session that speaks TLS, each request with the context of its moment."""

    def __init__(self, session: aiohttp.ClientSession, contexts: Callable[[], ssl.SSLContext]) -> None:
        self._session = session
        self._contexts = contexts

    def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes,
        headers: Mapping[str, str],
        allow_redirects: bool,
        timeout: aiohttp.ClientTimeout,
    ) -> AbstractAsyncContextManager[PeerAnswer]:
        """See ``PeerSession``."""
        return self._session.request(
            method,
            url,
            data=data,
            headers=headers,
            allow_redirects=allow_redirects,
            timeout=timeout,
            ssl=self._contexts(),
        )


class HttpPeers:
    """``PeerCalls`` over the HTTP API that every broker process has. ``session`` gives its owner's session."""

    def __init__(
        self, session: Callable[[], PeerSession], secret: ShownSecret, timeout_ms: float, scheme: str = "http"
    ) -> None:
        self._session = session
        self._scheme = scheme
        self._secret = secret
        self._timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000)

    def _headers(self) -> dict[str, str]:
        if self._secret is None:
            return {"Content-Type": MSGPACK}
        secret = self._secret if isinstance(self._secret, bytes) else self._secret()
        return {"Content-Type": MSGPACK, "Authorization": bearer(secret)}

    async def exchange(self, address: Address, message: bytes) -> bytes:
        """See ``PeerCalls``."""
        try:
            async with self._session().request(
                "POST",
                f"{self._scheme}://{address}{FOLLOW_PATH}",
                data=message,
                headers=self._headers(),
                allow_redirects=False,
                timeout=self._timeout,
            ) as response:
                length = int(response.headers.get("Content-Length", FRAME_BYTES_MAX + 1))
                if response.status != 200 or length > FRAME_BYTES_MAX:
                    raise PeerUnreachable(f"{address} answered {response.status} with {length} bytes")
                return await response.read()
        except TimeoutError as error:
            raise PeerUnreachable(f"{address} did not answer in time") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise PeerUnreachable(f"{address}: {error}") from error


class PeerAddresses:
    """The address of each broker's process.

    Args:
        told: of brokers that did not register where that is, as imported ones.
    """

    def __init__(self, told: Mapping[int, Address]) -> None:
        self._told = told
        self._cluster = ClusterImage()
        self._registered: dict[int, Address] = {}

    def in_image(
        self, image: MetadataImage, played: Collection[int], heard_from: Mapping[int, Address]
    ) -> dict[int, Address]:
        """By broker; those nobody knows the address of are left out.

        Args:
            played: the brokers of this process.
            heard_from: where those said they are who follow brokers here; it counts for those of whom nothing is known.
        """
        if image.cluster is not self._cluster:
            self._cluster = image.cluster
            found = ((broker, self._address(known)) for broker, known in image.cluster.brokers.items())
            self._registered = {broker: address for broker, address in found if address is not None}
        heard = {broker: at for broker, at in heard_from.items() if is_loopback(at.rpartition(":")[0].strip("[]"))}
        return heard | self._registered | dict.fromkeys(played, LOCAL)

    def _address(self, broker: BrokerRegistration) -> Address | None:
        if broker.id in self._told:
            return self._told[broker.id]
        ends = (end for end in broker.listeners if end.name == HTTP_LISTENER and is_loopback(end.host))
        return next((host_and_port(end.host, end.port) for end in ends), None)


def host_and_port(host: str, port: int) -> Address:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
