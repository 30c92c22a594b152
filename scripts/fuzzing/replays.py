"""Replays: what an honest node has really said, sent once more by somebody else."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Final

from quorate.controller.identity.seals import Seals
from quorate.metadata_log.errors import QuorateError
from quorate.quorum.config import QuorumConfig
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.frames import framed
from quorate.quorum.transport.handshake import NONCE_BYTES, encode_hello, own_hello
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.fuzzing.knocking import ATTEMPT_S, request

_READ_BYTES: Final = 65_536


class NothingRecorded(QuorateError):
    """The session that was to be recorded was refused: there is nothing to send again."""


def voter_hello(config: QuorumConfig) -> bytes:
    """The first frame of a voter to another, as its bytes stand before TLS."""
    hello = own_hello(config, Channel.CONSENSUS, is_voter=True, nonce=secrets.token_bytes(NONCE_BYTES))
    return framed(encode_hello(hello))


def sealed_request(secret: bytes, controllers: Iterable[int], method: str, path: str) -> bytes:
    """A request as a controller sends it to another."""
    voters, body = frozenset(controllers), b"" if method == "GET" else b"{}"
    seal = Seals(lambda: (secret,), min(voters), voters, lambda: time.time() * 1000).seal
    return request(method, path, body, seal(method, path, {}, body))


async def recorded(port: int, context: ssl.SSLContext, said: bytes) -> bytes:
    """All that goes over the wire to a port in a session in which something is said and answered.

    Raises:
        NothingRecorded: it was not answered.
    """
    from_wire, to_wire, sent = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    ends = context.wrap_bio(from_wire, to_wire, server_hostname=LOOPBACK)
    reader, writer = await asyncio.open_connection(LOOPBACK, port)

    async def until_through(step: Callable[[], object]) -> None:
        nonlocal sent
        while True:
            try:
                step()
                return
            except ssl.SSLWantReadError:
                pass
            finally:
                out = to_wire.read()
                sent += out
                writer.write(out)
            data = await reader.read(_READ_BYTES)
            if not data:
                raise NothingRecorded(f"port {port} has closed a session of an honest node")
            from_wire.write(data)

    try:
        async with asyncio.timeout(ATTEMPT_S):
            await until_through(ends.do_handshake)
            await until_through(lambda: ends.write(said))
            await until_through(lambda: ends.read(1))
    except (TimeoutError, OSError) as error:
        raise NothingRecorded(f"port {port} does not answer an honest node") from error
    finally:
        writer.transport.abort()
    return sent


async def replay(port: int, sent: bytes) -> str:
    """Send it once more: whether whoever is there closes the connection, or keeps it."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        async with asyncio.timeout(ATTEMPT_S):
            writer.write(sent)
            while await reader.read(_READ_BYTES):
                pass
    except TimeoutError:
        return "kept"
    finally:
        writer.transport.abort()
    return "closed"
