"""A client: finds each key's shard, and the shard's leader, in the metadata that it watches."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from examples.sharded_kv.service import LISTENER, ask
from examples.sharded_kv.shard import Refused
from quorate.watch import Watcher, watch

_RETRY_S = 0.05


class KvClient:
    """Made by ``connect``. Both calls go on until they are answered, or cancelled."""

    def __init__(self, watcher: Watcher, session: aiohttp.ClientSession, topic: str) -> None:
        self.watcher = watcher
        self._session = session
        self._topic = topic

    async def put(self, key: str, value: str) -> None:
        """Write; it may have happened more than once, and before others that were tried after it."""
        await self._ask(key, "put", {"key": key, "value": value})

    async def get(self, key: str) -> str | None:
        """The newest value; None: there never was one."""
        value: str | None = (await self._ask(key, "get", {"key": key}))["value"]
        return value

    def shard_of(self, key: str) -> int:
        """Number of the shard that a key is in."""
        topic = self.watcher.image.topics.by_name[self._topic]
        return zlib.crc32(key.encode()) % len(list(self.watcher.image.partitions.partitions_of(topic.id)))

    def url_of(self, shard: int) -> str | None:
        """Where its leader listens; None: nobody leads."""
        image = self.watcher.image
        row = image.partitions.row(image.topics.by_name[self._topic].id, shard)
        leader = None if row is None else image.cluster.brokers.get(image.partitions.partition(row).leader)
        ends = [] if leader is None else [end for end in leader.listeners if end.name == LISTENER]
        return f"http://{ends[0].host}:{ends[0].port}" if ends else None

    async def _ask(self, key: str, path: str, question: dict[str, str]) -> dict[str, str | None]:
        shard = self.shard_of(key)
        while True:
            if url := self.url_of(shard):
                try:
                    return await ask(self._session, f"{url}/{path}", {"shard": f"{self._topic}-{shard}", **question})
                except Refused:
                    pass
            await asyncio.sleep(_RETRY_S)


@asynccontextmanager
async def connect(controllers: Sequence[str], topic: str) -> AsyncIterator[KvClient]:
    """A client for the time of a block."""
    async with aiohttp.ClientSession() as session, watch(controllers) as watcher:
        await watcher.wait_for(lambda image: topic in image.topics.by_name)
        yield KvClient(watcher, session, topic)
