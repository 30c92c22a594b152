"""Clients of the cluster, and what they saw: standing ones that keep their connections, and probes that make new ones.

Standing clients change and read a few topics, each by its own controllers in turn, and all of it is history. Probes are
there to tell when the controllers took writes again from when somebody's old connections found out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final, TypeVar

from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.controller.protocol import CreatePartitionsRequest, CreateTopicsRequest
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest
from quorate.metadata_log.errors import ApiError, OutcomeUnknown
from quorate.scripts.simulation.system.history import CallHistory
from quorate.scripts.simulation.system.topic_register import (
    Action,
    Configure,
    Create,
    Delete,
    Grow,
    ReadTopic,
    TopicState,
    claim_of,
)
from quorate.scripts.simulation.system.workload import CONFIG, TopicNames

#: How long each standing client waits for an answer: the impatient, and the command line's own.
PATIENCE_MS: Final = (2_000.0, 5_000.0, 10_000.0, 30_000.0)
_PROBE_MS: Final = 2_000.0
_PROBE_INTERVAL_S: Final = 0.1
_PROBES_AT_ONCE: Final = 30
#: Of one standing client, on average.
_REQUESTS_PER_S: Final = 8.0
_TOPICS: Final = 6
#: A topic's name is given up after so many unanswered changes (each doubles the orders to be looked at), or calls.
_UNKNOWN_MAX: Final = 5
_CALLS_MAX: Final = 400

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A write that was answered. Monotonic seconds."""

    called: float
    answered: float
    #: Number of the standing client; None: a probe.
    client: int | None


@dataclass(slots=True)
class Workload:
    """All clients of a run, and their history."""

    urls: Sequence[str]
    secret: bytes
    rng: Random
    history: CallHistory = field(default_factory=CallHistory)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    #: Topics that probes have made, and that must therefore be there.
    made: list[str] = field(default_factory=list)
    names: TopicNames = field(default_factory=lambda: TopicNames(_TOPICS))
    _calls: dict[str, int] = field(default_factory=dict)
    _probes: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until told to stop; every call has come to its end then."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(len(PATIENCE_MS)):
                tasks.create_task(self._stand(number, stop))
            tasks.create_task(self._probe(stop))

    async def conclude(self) -> None:
        """Read every topic through every controller, in a network that works."""
        for url in self.urls:
            async with self._client([url], PATIENCE_MS[-1]) as client:
                for topic in self.names.used():
                    await self._read(client, topic)

    # --- what came of it -----------------------------------------------------------------------------

    def next_write(self, after: float, client: int | None = None) -> float | None:
        """Seconds from a moment to the end of the first write that was begun after it; of a client, or of any."""
        mine = [one for one in self.acknowledged if client is None or one.client == client]
        return min((one.answered - after for one in mine if one.called >= after), default=None)

    def every_client(self, after: float) -> float | None:
        """Seconds until each standing client has had a write acknowledged, whenever it was begun."""
        firsts = [
            min(
                (one.answered - after for one in self.acknowledged if one.client == number and one.answered > after),
                default=None,
            )
            for number in range(len(PATIENCE_MS))
        ]
        return None if None in firsts else max(first for first in firsts if first is not None)

    def longest_wait(self, since: float, until: float) -> float:
        """Longest time in which no write was acknowledged."""
        times = sorted({since, until, *(a.answered for a in self.acknowledged if since <= a.answered <= until)})
        return max((later - earlier for earlier, later in pairwise(times)), default=0.0)

    def latencies(self, since: float) -> list[float]:
        """Of the standing clients' writes, in order of size."""
        return sorted(a.answered - a.called for a in self.acknowledged if a.client is not None and a.called >= since)

    # --- standing clients ----------------------------------------------------------------------------

    def _client(self, urls: Sequence[str], timeout_ms: float) -> ControllerClient:
        return ControllerClient(urls, timeout_ms=timeout_ms, shared_secret=self.secret, insecure=True)

    def _urls_from(self, number: int) -> list[str]:
        first = number % len(self.urls)
        return [*self.urls[first:], *self.urls[:first]]

    async def _stand(self, number: int, stop: asyncio.Event) -> None:
        rng = Random(self.rng.getrandbits(64))
        kinds: Sequence[Callable[[], Awaitable[None]]]
        async with self._client(self._urls_from(number), PATIENCE_MS[number]) as client:
            kinds = [
                lambda: self._read(client, self.names.any(rng)),
                lambda: self._create(client, rng, number),
                lambda: self._delete(client, rng, number),
                lambda: self._configure(client, rng, number),
                lambda: self._grow(client, rng, number),
            ]
            while not stop.is_set():
                await rng.choices(kinds, (30, 20, 8, 35, 7))[0]()
                await asyncio.sleep(rng.expovariate(_REQUESTS_PER_S))

    async def _ask(
        self,
        topic: str,
        action: Action,
        work: Awaitable[T],
        outcome: Callable[[T], Action],
        client: int | None = None,
    ) -> None:
        """Send a request about a topic, and note what becomes of it."""
        self._count(topic)
        called = time.monotonic()
        asked = self.history.begin(topic, called, action)
        try:
            done = outcome(await work)
        except (OutcomeUnknown, NoAnswer):
            if isinstance(action, ReadTopic):
                self.history.refused(asked)
            else:
                self.names.unanswered(topic, _UNKNOWN_MAX)
        except NotSent:
            self.history.refused(asked)
        except ApiError as error:
            claim = claim_of(action, error)
            if claim is None:
                self.history.refused(asked)
            else:
                self.history.succeeded(asked, time.monotonic(), claim)
        else:
            answered = time.monotonic()
            self.history.succeeded(asked, answered, done)
            if not isinstance(action, ReadTopic):
                self.acknowledged.append(Acknowledged(called, answered, client))

    def _count(self, topic: str) -> None:
        self._calls[topic] = self._calls.get(topic, 0) + 1
        if self._calls[topic] == _CALLS_MAX:
            self.names.unanswered(topic, 0)

    async def _read(self, client: ControllerClient, topic: str) -> None:
        async def look() -> ReadTopic:
            reply = await client.describe_topic(topic, is_linearizable=True)
            value = {config.name: config.value for config in reply.configs}.get(CONFIG)
            return ReadTopic(TopicState(reply.topic.topic_id, len(reply.topic.partitions), value))

        await self._ask(topic, ReadTopic(None), look(), lambda seen: seen)

    async def _create(self, client: ControllerClient, rng: Random, number: int) -> None:
        topic, partitions, value = self.names.any(rng), rng.randint(1, 4), rng.choice((None, "1000", "2000"))
        configs = [] if value is None else [{"name": CONFIG, "value": value}]
        wanted = {"name": topic, "num_partitions": partitions, "replication_factor": rng.randint(1, 2)}
        request = CreateTopicsRequest.model_validate({"topics": [{**wanted, "configs": configs}]})
        work = client.create_topics(request)
        action = Create(partitions, value)
        await self._ask(topic, action, work, lambda reply: Create(partitions, value, reply.topics[0].topic_id), number)

    async def _delete(self, client: ControllerClient, rng: Random, number: int) -> None:
        topic, action = self.names.any(rng), Delete()
        await self._ask(topic, action, client.delete_topic(topic), lambda _: action, number)

    async def _configure(self, client: ControllerClient, rng: Random, number: int) -> None:
        topic, value = self.names.any(rng), rng.choice((None, "1000", "2000", "3000"))
        change = {"name": CONFIG, "config_operation": "DELETE" if value is None else "SET", "value": value}
        resource = {"resource_type": "TOPIC", "resource_name": topic, "configs": [change]}
        request = IncrementalAlterConfigsRequest.model_validate({"resources": [resource]})
        work, action = client.incremental_alter_configs(request), Configure(value)
        await self._ask(topic, action, work, lambda _: action, number)

    async def _grow(self, client: ControllerClient, rng: Random, number: int) -> None:
        topic, count = self.names.any(rng), rng.randint(2, 8)
        request = CreatePartitionsRequest.model_validate({"topics": [{"name": topic, "count": count}]})
        work, action = client.create_partitions(request), Grow(count)
        await self._ask(topic, action, work, lambda _: action, number)

    # --- probes --------------------------------------------------------------------------------------

    async def _probe(self, stop: asyncio.Event) -> None:
        under_way: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                if len(under_way) < _PROBES_AT_ONCE:
                    task = group.create_task(self._probe_once(self._probes))
                    self._probes += 1
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
                await asyncio.sleep(_PROBE_INTERVAL_S)

    async def _probe_once(self, number: int) -> None:
        name = f"probe-{number}"
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        called = time.monotonic()
        async with self._client(self._urls_from(number), _PROBE_MS) as client:
            try:
                await client.create_topics(CreateTopicsRequest.model_validate({"topics": [topic]}))
            except (ApiError, NoAnswer, NotSent):
                return
        self.made.append(name)
        self.acknowledged.append(Acknowledged(called, time.monotonic(), None))
