"""One knock at a port: what is sent, and what comes of it, in a word."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any, Final

from quorate.scripts.cluster.ports import LOOPBACK

#: Of one attempt, in seconds: beyond it, whoever is attacked has let the intruder wait.
ATTEMPT_S: Final = 3.0
_ANSWER_BYTES_MAX: Final = 4_000_000


def request(method: str, path: str, body: bytes = b"", authorization: str = "") -> bytes:
    """The bytes of a request after which the connection is to be closed."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if authorization:
        lines.append(f"Authorization: {authorization}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def knock(port: int, context: ssl.SSLContext | None, said: bytes) -> str:
    """The status of the answer, or how the connection ended without one."""
    outcome, _ = await _ask(port, context, said, is_read_on=False)
    return outcome


async def ask(port: int, context: ssl.SSLContext | None, said: bytes) -> tuple[str, dict[str, Any]]:
    """The same, and what a JSON answer says; nothing where there is none."""
    outcome, body = await _ask(port, context, said, is_read_on=True)
    return outcome, json.loads(body) if body else {}


async def _ask(port: int, context: ssl.SSLContext | None, said: bytes, *, is_read_on: bool) -> tuple[str, bytes]:
    outcome, body = "no answer", b""
    try:
        async with asyncio.timeout(ATTEMPT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=context, limit=_ANSWER_BYTES_MAX)
            try:
                writer.write(said)
                line = (await reader.readline()).split()
                outcome = line[1].decode() if line[:1] == [b"HTTP/1.1"] else "closed"
                if is_read_on and outcome != "closed":
                    body = (await reader.read()).partition(b"\r\n\r\n")[2]
            finally:
                writer.transport.abort()
    except TimeoutError:
        pass
    except ssl.SSLError:
        outcome = "refused in TLS"
    except OSError:
        outcome = "closed"
    return outcome, body
