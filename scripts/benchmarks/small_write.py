"""The smallest change that can be asked for over HTTP: a topic of one partition."""

from __future__ import annotations

from quorate.controller.client.connection import Connection, Request
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest


async def small_write(connection: Connection, name: str, timeout_ms: float) -> None:
    """Ask one controller, which passes it on to the active one; returns once it is committed.

    Raises:
        NotSent, NoAnswer, ApiError: it is not, as far as is known.
    """
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    await connection.send(Request("POST", "/v1/topics", timeout_ms, body=CreateTopicsRequest(topics=[topic])))
