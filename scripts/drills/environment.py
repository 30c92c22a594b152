"""The environment of a drill: a cluster of real processes, control of them, a stream of writes, a clock, a notebook."""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import DeleteTopicsRequest
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.errors import NotController, QuorateError
from quorate.scripts.cluster.control import LocalControl, ProcessControl
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.process import ManagedProcess
from quorate.scripts.cluster.watched import WatchedCluster
from quorate.scripts.drills.load import LEAD_S, Load, longest_wait_ms, unwritten_ms
from quorate.scripts.drills.offered import remove_written
from quorate.scripts.drills.outcome import DrillEvent, EventKind
from quorate.scripts.terminal.survey import ask
from quorate.scripts.tour.digests import digests_at_one_offset

#: Until everything is healthy: beyond it a drill is broken, not slow.
DEADLINE_S: Final = 60.0
_STATUS_MS: Final = 2_000.0
_DELETED_AT_ONCE: Final = 500


class DrillBroken(QuorateError):
    """A drill could not be carried out: its environment was not steady, or what it does had no effect."""


class DrillEnvironment:
    """One drill's cluster. Times of events are monotonic seconds; what is noted counts from the begin."""

    def __init__(self, cluster: WatchedCluster, control: ProcessControl, workplace: Path) -> None:
        self.cluster = cluster
        self.control = control
        #: What every topic of this drill begins with.
        self.prefix = f"drill-{uuid.uuid4().hex[:8]}"
        #: For what a drill needs besides the cluster; goes with the drill.
        self.workplace = workplace
        self.begun = time.monotonic()
        self.events: list[DrillEvent] = []
        self.values: dict[str, float] = {}
        self.noted: dict[str, float | str] = {}
        #: Writes, which are there all the time.
        self.load = Load(self.prefix, len(cluster.members.broker_ids), self._until)

    # --- the notebook --------------------------------------------------------------------------------

    def event(self, kind: EventKind, text: str) -> float:
        """Note what happens now; the moment."""
        now = time.monotonic()
        self.events.append(DrillEvent(at_s=round(now - self.begun, 3), kind=kind, text=text))
        return now

    def measure(self, name: str, value: float) -> None:
        """A value that something is expected of; of several the worst counts."""
        self.values[name] = max(round(value, 1), self.values.get(name, 0.0))

    # --- looking -------------------------------------------------------------------------------------

    @property
    def controllers(self) -> Mapping[int, LocalNode]:
        return self.cluster.members.controllers

    @property
    def brokers(self) -> Mapping[int, LocalNode]:
        return self.cluster.members.brokers

    @property
    def local(self) -> LocalControl:
        """Hands on processes that this one has started, whose files lie here."""
        if not isinstance(self.control, LocalControl):
            raise DrillBroken("this drill is for a cluster of its own")
        return self.control

    def client_of(self, nodes: Iterable[LocalNode], at: str | None = None) -> ControllerClient:
        """A client of these controllers and no others, for the state ``at`` a moment, if one is said."""
        return ControllerClient([node.url for node in nodes if node.url is not None], tls=self.cluster.tls, at=at)

    @property
    def ssl(self) -> ssl.SSLContext | Literal[True]:
        """With which a process is asked past the client; True, as libraries have it, where none speaks TLS."""
        return True if self.cluster.tls is None else self.cluster.tls()

    def process(self, node: int) -> ManagedProcess:
        """A controller's process, a child of this one."""
        return self.local.process(self.controllers[node])

    def directory(self, node: int) -> Path:
        """A controller's metadata directory."""
        cluster = self.local.cluster
        return controller_directory(cluster.directory, next(one for one in cluster.plan.controllers if one.id == node))

    def newest_segment(self, node: int) -> Path:
        return max((self.directory(node) / LOG_DIRECTORY_NAME).glob("*.log"))

    async def status(self) -> StatusReply:
        """The cluster as the controller sees it that knows most: some may be cut off, and not know it.

        Raises:
            NotController: none answers.
        """
        client = self.cluster.client
        asked = await asyncio.gather(*(ask(client, url, _STATUS_MS) for url in self.cluster.members.controller_urls))
        replies = [one.reply for one in asked if one.reply is not None]
        if not replies:
            raise NotController(None, "no controller answers")
        return max(replies, key=lambda reply: (reply.quorum.epoch, reply.quorum.active_id is not None))

    async def active(self) -> int:
        """The active controller, once there is one."""

        async def look() -> int | None:
            return (await self.status()).quorum.active_id

        return await self.cluster.until(look, "there is an active controller", DEADLINE_S)

    async def standby(self) -> int:
        """A controller that is not the active one."""
        active = await self.active()
        return max(node for node in self.controllers if node != active)

    async def until(self, is_so: Callable[[StatusReply], bool], what: str) -> StatusReply:
        """Until the cluster, as its active controller sees it, is so."""

        async def look() -> StatusReply | None:
            status = await self.status()
            return status if is_so(status) else None

        return await self.cluster.until(look, what, DEADLINE_S)

    async def until_voting(self) -> None:
        """Until every controller is active or a standby: none unreachable, none without its vote."""
        await self.cluster.wait_for_controllers(DEADLINE_S)

    async def until_steady(self) -> None:
        """Until all controllers vote, all brokers are active, and no partition is offline."""
        await self.until_voting()
        await self.cluster.wait_for_brokers(DEADLINE_S)
        await self.until(lambda s: s.partitions.offline == 0, "no partition is offline")

    async def votes_again(self, node: int, started: float) -> None:
        """Wait until a controller that was started votes with the others, and measure how long that took."""
        await self.until_voting()
        self.measure("votes_again_ms", (self.event("seen", f"controller {node} votes again") - started) * 1000)

    # --- acting --------------------------------------------------------------------------------------

    async def kill(self, *nodes: LocalNode) -> float:
        """kill -9, all at once; the moment."""
        at = self.event("fault", f"kill -9 {_names(nodes)}")
        await self.control.kill(nodes)
        return at

    async def stop(self, node: LocalNode) -> None:
        """SIGTERM, and wait until it has ended as it should."""
        self.event("fault", f"SIGTERM {node.name}")
        code = await self.control.stop(node)
        if code not in (0, None):
            raise DrillBroken(f"{node.name} ended with exit code {code} after SIGTERM")

    async def restart(self, *nodes: LocalNode) -> float:
        at = self.event("repair", f"start {_names(nodes)}")
        await self.control.start(nodes)
        return at

    @asynccontextmanager
    async def written_to(self) -> AsyncIterator[None]:
        """Let everything run, require that it is steady, and write while the block lasts."""
        await self.control.begin()
        await self.until_steady()
        self.event("seen", "steady: all controllers vote, all brokers are active")
        async with self.load.running(self.cluster.client):
            yield

    async def settle(self, since: float) -> None:
        """Wait until all is well again, then measure what every drill must: nothing lost, everybody the same."""
        await self.until_steady()
        healthy = self.event("seen", "healthy again: all vote, all brokers active")
        await self.load.more(1)
        await self.load.end()
        self.measure("healthy_again_ms", (healthy - since) * 1000)
        self._measure_writes(healthy)
        names = await self.cluster.topic_names()
        self.measure("lost_writes", sum(name not in names for name in self.load.acknowledged))
        offset, digests = await digests_at_one_offset(self.cluster, DEADLINE_S)
        self.measure("nodes_that_differ", len(set(digests.values())) - 1)
        self.noted["digest_offset"] = offset
        self.noted["digest"] = next(iter(digests.values()))
        self.event("seen", f"{len(digests)} nodes compared at offset {offset}")

    def forget_unheld(self, held: set[str]) -> None:
        """Expect nothing of writes that were acknowledged and that no directory left holds: note how many."""
        self.noted["acknowledged_and_not_held"] = self.load.forget_unheld(held)

    async def renew_controllers(self, plan: ClusterPlan) -> None:
        """Go on with other controllers under the same brokers, which keep running."""
        before = self.local.cluster
        renewed = LocalCluster(before.directory, plan, before.options)
        renewed.brokers.update(before.brokers)
        self.cluster, self.control = renewed, LocalControl(renewed)
        await self.load.go_on_with(renewed.client)
        await before.client.close()

    async def remove_created(self) -> None:
        """Delete what this drill has created: a cluster that others use is to be as it was."""
        while True:
            page = await self.cluster.client.list_topics(
                after=self.prefix, limit=_DELETED_AT_ONCE, consistency="linearizable"
            )
            ours = [topic.topic_id for topic in page.topics if topic.name.startswith(self.prefix)]
            if not ours:
                break
            await self.cluster.client.delete_topics(DeleteTopicsRequest(topic_ids=ours))
        await remove_written(self.cluster.client, self.prefix)

    def _measure_writes(self, well_again: float) -> None:
        """Measure the writes from the first fault until all was well again, and the part of it that they do not
        cover.
        """
        times = self.load.times
        fault = next((self.begun + event.at_s for event in self.events if event.kind == "fault"), times[0] + LEAD_S)
        self.measure("outage_ms", longest_wait_ms(times, fault, times[-1]))
        self.measure("unwritten_ms", unwritten_ms(times, fault, well_again))
        self.noted["writes"] = len(times)

    async def _until(self, look: Callable[[], Awaitable[bool | None]], what: str) -> bool:
        return await self.cluster.until(look, what, DEADLINE_S)


def _names(nodes: Iterable[LocalNode]) -> str:
    return ", ".join(node.name for node in nodes)
