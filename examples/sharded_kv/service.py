"""One worker: its shards, what it answers over HTTP, and how it asks the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from examples.sharded_kv.shard import Refused, Shard
from examples.sharded_kv.store import Store
from quorate.worker import LocalReplica, ServiceReplicas, Worker

#: Name of the listener that workers register.
LISTENER = "KV"
_ASK_S = 1.0


class KvReplicas(ServiceReplicas):
    """Tells each shard what the cluster wants of it."""

    def __init__(self, broker_id: int, store: Store, session: aiohttp.ClientSession) -> None:
        super().__init__()
        self.broker_id = broker_id
        self.worker: Worker | None = None
        self._store = store
        self._session = session
        self._shards: dict[str, Shard] = {}

    def shard(self, name: str) -> Shard:
        """A shard, whether it has a replica here or not."""
        if name not in self._shards:
            self._shards[name] = Shard(name, self.broker_id, self, self._store, self)
        return self._shards[name]

    def lead(self, broker_id: int, replica: LocalReplica) -> None:
        self.shard(_name(replica)).lead(replica)

    def follow(self, broker_id: int, replica: LocalReplica) -> None:
        self.shard(_name(replica)).follow(replica)

    def drop(self, broker_id: int, replica: LocalReplica) -> None:
        self.shard(_name(replica)).drop()

    def on_deletable(self, broker_id: int, replica: LocalReplica) -> None:
        self._store.drop(_name(replica))

    async def end(self) -> None:
        """Stop all shards."""
        for shard in self._shards.values():
            await shard.end()

    # --- the other workers (``shard.Peers``) ---------------------------------------------------------

    def unfenced(self) -> set[int]:
        """Those that the newest image shows as alive, this one excluded."""
        assert self.worker is not None
        brokers = self.worker.image.cluster.brokers.values()
        return {broker.id for broker in brokers if not broker.is_fenced} - {self.broker_id}

    async def ask(self, broker_id: int, path: str, question: dict[str, Any]) -> dict[str, Any]:
        """Ask one of them. Raises ``Refused``."""
        assert self.worker is not None
        known = self.worker.image.cluster.brokers.get(broker_id)
        ends = [end for end in (known.listeners if known else ()) if end.name == LISTENER]
        if not ends:
            raise Refused(f"broker {broker_id} has no listener {LISTENER}")
        return await ask(self._session, f"http://{ends[0].host}:{ends[0].port}/{path}", question)


def _name(replica: LocalReplica) -> str:
    return f"{replica.topic}-{replica.partition_id}"


async def ask(session: aiohttp.ClientSession, url: str, question: dict[str, Any]) -> dict[str, Any]:
    """Ask a worker. Raises ``Refused`` where it refuses, or there is no answer in time."""
    try:
        async with session.post(url, json=question, timeout=aiohttp.ClientTimeout(total=_ASK_S)) as response:
            answer: dict[str, Any] = await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise Refused(f"{url}: {error!r}") from error
    if response.status != web.HTTPOk.status_code:
        raise Refused(str(answer.get("error")))
    return answer


@asynccontextmanager
async def serving(replicas: KvReplicas, host: str) -> AsyncIterator[int]:
    """Listen. Gives the port."""

    async def put(question: dict[str, Any]) -> dict[str, Any]:
        await replicas.shard(question["shard"]).put(question["key"], question["value"])
        return {}

    async def get(question: dict[str, Any]) -> dict[str, Any]:
        return {"value": replicas.shard(question["shard"]).get(question["key"])}

    async def fetch(question: dict[str, Any]) -> dict[str, Any]:
        return await replicas.shard(question.pop("shard")).fetch(**question)

    async def bar(question: dict[str, Any]) -> dict[str, Any]:
        replicas.shard(question["shard"]).bar(question["epoch"])
        return {}

    app = web.Application()
    for answer in (put, get, fetch, bar):
        app.router.add_post(f"/{answer.__name__}", _handler(answer))
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _handler(answer: Any) -> Any:
    async def handle(request: web.Request) -> web.Response:
        try:
            return web.json_response(await answer(await request.json()))
        except Refused as refused:
            return web.json_response({"error": str(refused)}, status=web.HTTPConflict.status_code)

    return handle


def store_in(directory: Path) -> Store:
    """The store of a worker."""
    directory.mkdir(parents=True, exist_ok=True)
    return Store(directory / "shards.sqlite")
