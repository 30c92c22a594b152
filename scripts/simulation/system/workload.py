"""The clients' workload: random changes and reads of topics, as a history; the other admin requests, as disturbance."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
)
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest
from quorate.metadata_log.errors import ApiError, OutcomeUnknown
from quorate.scripts.simulation.system.controller_process import WireClient
from quorate.scripts.simulation.system.http_wire import WireSession
from quorate.scripts.simulation.system.topic_register import (
    Action,
    Configure,
    Create,
    Delete,
    Grow,
    Labelled,
    ReadTopic,
    Swap,
    TopicState,
    claim_of,
)
from quorate.snapshots.image.image import MetadataImage

if TYPE_CHECKING:
    from quorate.scripts.simulation.system.world import SystemWorld

CONFIG: Final = "retention.ms"
LABEL: Final = "simulation/owner"
TIMEOUTS_MS: Final = (400.0, 1_500.0, 4_000.0)
#: A topic's name is given up after so many unanswered changes: each doubles the orders that must be looked at.
_UNKNOWN_MAX: Final = 6

T = TypeVar("T")


class AdminClient:
    """One process with an admin client that asks again and again until the world heals."""

    def __init__(self, world: SystemWorld, client_id: int) -> None:
        self._world = world
        self._rng = Random(world.rng.getrandbits(64))
        self.client_id = client_id
        self.loop = world.new_loop(f"client {client_id}", 1.0)
        self._session = WireSession(world.wire, client_id)
        #: The controllers that it asks.
        self.urls = world.controller_urls
        self._task: asyncio.Task[None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether every call of its was answered or given up."""
        return self._task is None or self._task.done()

    def start(self) -> None:
        """Ask at random times until the world heals."""
        self._task = self.loop.spawn(self._run())

    def ask(self, kind: Callable[[AdminClient], Coroutine[Any, Any, None]]) -> None:
        """Ask one thing now."""
        self._task = self.loop.spawn(kind(self))

    def conclude(self) -> None:
        """Read every topic, and change some, in a world without faults."""
        self._task = self.loop.spawn(self._conclude())

    async def _run(self) -> None:
        while not self._world.is_healed:
            await asyncio.sleep(self._rng.expovariate(self._world.system.request_rate))
            if not self._world.is_healed:
                await self._ask_several(self._rng.choices((1, 2, 4), (6, 2, 2))[0])

    async def _ask_several(self, count: int) -> None:
        """At the same time: what one is decided on may not be committed yet."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(self._rng.choices(_KINDS, _WEIGHTS)[0](self))

    async def _conclude(self) -> None:
        for topic in self._world.topic_names.used():
            await self._read(topic)
        for change in (AdminClient.create_topics, AdminClient.configure, AdminClient.add_partitions):
            await change(self)

    # --- asking --------------------------------------------------------------------------------------

    def _client(self) -> WireClient:
        """A client that begins with any controller."""
        urls = self._rng.sample(self.urls, len(self.urls))
        timeout_ms = 30_000.0 if self._world.is_healed else self._rng.choice(TIMEOUTS_MS)
        return WireClient(urls, self._session, timeout_ms)

    async def _ask(
        self, topic: str, action: Action, work: Awaitable[T], outcome: Callable[[T], Action] | None = None
    ) -> T | None:
        """Send a request about a topic, and note what becomes of it."""
        world = self._world
        asked = world.history.begin(topic, world.scheduler.now, action)
        world.tell(f"client {self.client_id} asks of {topic}: {action}")
        try:
            answer = await work
        except OutcomeUnknown as error:
            if world.is_concluding:
                world.violation(f"a change was not answered in a world without faults: {error}")
            world.tell(f"client {self.client_id} is not answered of {topic}: {error}")
            world.topic_names.unanswered(topic, _UNKNOWN_MAX)
            return None
        except ApiError as error:
            world.tell(f"client {self.client_id} is refused of {topic}: {error}")
            claim = claim_of(action, error)
            if claim is None:
                world.history.refused(asked)
            else:
                world.history.succeeded(asked, world.scheduler.now, claim)
            return None
        except (NoAnswer, NotSent):
            if not isinstance(action, ReadTopic | Labelled):
                raise
            world.history.refused(asked)
            return None
        world.history.succeeded(asked, world.scheduler.now, action if outcome is None else outcome(answer))
        world.tell(f"client {self.client_id} is answered of {topic}: {asked.action}")
        return answer

    async def _read(self, topic: str) -> None:
        client = self._client()

        async def look() -> ReadTopic:
            reply = await client.describe_topic(topic, is_linearizable=True)
            value = {config.name: config.value for config in reply.configs}.get(CONFIG)
            return ReadTopic(TopicState(reply.topic.topic_id, len(reply.topic.partitions), value))

        await self._ask(topic, ReadTopic(None), look(), lambda seen: seen)

    # --- what the history is of ----------------------------------------------------------------------

    async def read_topic(self) -> None:
        await self._read(self._world.topic_names.any(self._rng))

    async def create_topics(self) -> None:
        rng = self._rng
        topic = self._world.topic_names.any(rng)
        partitions, value = rng.randint(1, 4), rng.choice((None, "1000", "2000"))
        configs = [] if value is None else [{"name": CONFIG, "value": value}]
        if rng.random() < 0.3:
            configs.append({"name": "min.insync.replicas", "value": rng.choice("12")})
        wanted = {"name": topic, "num_partitions": partitions, "replication_factor": rng.randint(1, 3)}
        request = CreateTopicsRequest.model_validate({"topics": [{**wanted, "configs": configs}]})
        work = self._client().create_topics(request)
        await self._ask(
            topic, Create(partitions, value), work, lambda reply: Create(partitions, value, reply.topics[0].topic_id)
        )

    async def delete_topic(self) -> None:
        topic = self._world.topic_names.any(self._rng)
        known = self._believed().topics.by_name.get(topic)
        if known is None or self._rng.random() < 0.5:
            await self._ask(topic, Delete(), self._client().delete_topic(topic))
        else:
            request = DeleteTopicsRequest(topic_ids=[known.id])
            await self._ask(topic, Delete(known.id), self._client().delete_topics(request))

    async def add_partitions(self) -> None:
        topic = self._world.topic_names.any(self._rng)
        known = self._believed().topics.by_name.get(topic)
        count = 1 if known is None else sum(1 for _ in self._believed().partitions.partitions_of(known.id))
        count += self._rng.randint(0, 3)
        request = CreatePartitionsRequest.model_validate({"topics": [{"name": topic, "count": count}]})
        await self._ask(topic, Grow(count), self._client().create_partitions(request))

    async def configure(self) -> None:
        await self._configure(self._rng.choice((None, "1000", "2000", "3000")))

    async def configure_first(self) -> None:
        await self._configure("1000")

    async def configure_second(self) -> None:
        await self._configure("2000")

    async def _configure(self, value: str | None) -> None:
        topic = self._world.topic_names.any(self._rng)
        change = {"name": CONFIG, "config_operation": "DELETE" if value is None else "SET", "value": value}
        resource = {"resource_type": "TOPIC", "resource_name": topic, "configs": [change]}
        request = IncrementalAlterConfigsRequest.model_validate({"resources": [resource]})
        await self._ask(topic, Configure(value), self._client().incremental_alter_configs(request))

    async def swap_label(self) -> None:
        """Two who have seen the same label, and change it, must not both succeed."""
        rng = self._rng
        topic = self._world.topic_names.any(rng)
        believed = self._believed().labels.of(f"topic:{topic}").get(LABEL)
        expected = believed if rng.random() < 0.7 else rng.choice((None, "1", "2"))
        value = rng.choice((None, "1", "2", "3"))
        work = self._client().labels.compare_and_set(f"topic:{topic}", LABEL, expected, value)
        await self._ask(topic, Swap(expected, value), work)

    async def read_label(self) -> None:
        topic = self._world.topic_names.any(self._rng)

        async def look() -> Labelled:
            return Labelled((await self._client().labels.of(f"topic:{topic}")).get(LABEL))

        await self._ask(topic, Labelled(None), look(), lambda seen: seen)

    # --- what disturbs it ----------------------------------------------------------------------------

    def _believed(self) -> MetadataImage:
        """The image that somebody might have of the cluster."""
        return self._world.checks.reference.newest.stable

    async def _send(self, work: Awaitable[object]) -> bool:
        """Send something else; whether it succeeded."""
        try:
            await work
        except (ApiError, NoAnswer, NotSent):
            return False
        return True

    def _some_partition(self) -> tuple[str, int] | None:
        image = self._believed()
        names = sorted(image.topics.by_name)
        if not names:
            return None
        name = self._rng.choice(names)
        numbers = [number for number, _ in image.partitions.partitions_of(image.topics.by_name[name].id)]
        return name, self._rng.choice(numbers)

    async def read_stale(self) -> None:
        """From whichever controller, as it has it."""
        await self._send(self._client().describe_topic(self._world.topic_names.any(self._rng)))

    async def look(self) -> None:
        """Ask as an operator's screen does."""
        await self._send(self._rng.choice((self._client().status, self._client().describe_quorum))())

    async def reassign(self) -> None:
        chosen = self._some_partition()
        if chosen is None:
            return
        brokers = self._world.broker_ids
        replicas = None if self._rng.random() < 0.25 else self._rng.sample(brokers, self._rng.randint(1, len(brokers)))
        partition = {"partition_index": chosen[1], "replicas": replicas}
        values = {"topics": [{"name": chosen[0], "partitions": [partition]}], "allow_replication_factor_change": True}
        request = AlterPartitionReassignmentsRequest.model_validate(values)
        await self._send(self._client().alter_partition_reassignments(request))

    async def elect(self) -> None:
        chosen = self._some_partition()
        values: dict[str, object] = {"election_type": self._rng.choice(("PREFERRED", "UNCLEAN"))}
        if chosen is not None and self._rng.random() < 0.7:
            values["topic_partitions"] = [{"topic": chosen[0], "partitions": [chosen[1]]}]
        await self._send(self._client().elect_leaders(ElectLeadersRequest.model_validate(values)))

    async def unregister(self) -> None:
        await self._send(self._client().unregister_broker(self._rng.choice(self._world.broker_ids)))

    async def speak_as_a_dead_broker(self) -> None:
        """A heartbeat, or an ISR, under the epoch of an incarnation that is gone must be refused."""
        registered = list(self._believed().cluster.brokers.values())
        if not registered:
            return
        broker = self._rng.choice(registered)
        before = self._world.checks.reference.states[broker.epoch].head.cluster.brokers.get(broker.id)
        epoch = broker.epoch + self._rng.choice((-1, 1_000_000))
        if before is not None and before.epoch == epoch:
            return  # it registered twice in a row: somebody may rightly not know the second one yet
        if self._rng.random() < 0.5:
            beat = BrokerHeartbeatRequest(broker_id=broker.id, broker_epoch=epoch, current_metadata_offset=10**9)
            is_taken = await self._send(self._client().broker_heartbeat(beat))
        else:
            is_taken = await self._send(self._client().alter_partition(self._isr_of(broker.id, epoch)))
        if is_taken:
            self._world.violation(f"broker {broker.id} was heard under epoch {epoch}, which no registration has")

    def _isr_of(self, broker_id: int, epoch: int) -> AlterPartitionRequest:
        image = self._believed()
        led = [
            (topic_id, number, partition)
            for topic_id in sorted(image.topics.by_id)
            for number, partition in image.partitions.partitions_of(topic_id)
            if partition.leader == broker_id
        ]
        topics = []
        for topic_id, number, partition in self._rng.sample(led, min(len(led), 2)):
            members = [{"broker_id": broker_id, "broker_epoch": epoch}]
            shrunk = {
                "partition_index": number,
                "leader_epoch": partition.leader_epoch,
                "partition_epoch": partition.partition_epoch,
                "new_isr_with_epochs": members,
            }
            topics.append({"topic_id": topic_id, "partitions": [shrunk]})
        values = {"broker_id": broker_id, "broker_epoch": epoch, "topics": topics}
        return AlterPartitionRequest.model_validate(values)


_KINDS: Final[tuple[Callable[[AdminClient], Coroutine[Any, Any, None]], ...]] = (
    AdminClient.read_topic,
    AdminClient.create_topics,
    AdminClient.delete_topic,
    AdminClient.add_partitions,
    AdminClient.configure,
    AdminClient.read_stale,
    AdminClient.look,
    AdminClient.reassign,
    AdminClient.elect,
    AdminClient.unregister,
    AdminClient.speak_as_a_dead_broker,
    AdminClient.swap_label,
    AdminClient.read_label,
)
_WEIGHTS: Final = (28, 16, 8, 8, 12, 3, 1, 8, 4, 1, 6, 12, 6)


class TopicNames:
    """Names of topics that clients use. A name with too many unanswered changes makes room for a new one."""

    def __init__(self, count: int) -> None:
        self._names = [f"topic-{number}" for number in range(count)]
        self._next = count
        self._unanswered: dict[str, int] = {}
        self._used = list(self._names)

    def any(self, rng: Random) -> str:
        """One of those in use."""
        return rng.choice(self._names)

    def used(self) -> list[str]:
        """All that ever were."""
        return list(self._used)

    def unanswered(self, name: str, most: int) -> None:
        """A change of it was not answered."""
        self._unanswered[name] = self._unanswered.get(name, 0) + 1
        if self._unanswered[name] >= most and name in self._names:
            fresh = f"topic-{self._next}"
            self._next += 1
            self._names[self._names.index(name)] = fresh
            self._used.append(fresh)
