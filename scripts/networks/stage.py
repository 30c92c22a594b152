"""One run: a cluster on a network, clients on it, hands on the network, a clock and a notebook."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, QuorateError
from quorate.scripts.drills.outcome import DrillEvent, EventKind
from quorate.scripts.networks.clients import Workload
from quorate.scripts.networks.damage import is_noticed
from quorate.scripts.networks.evidence import read_evidence
from quorate.scripts.networks.network import VirtualNetwork
from quorate.scripts.networks.site import CLIENTS, Site

#: Until what must come about has: beyond it a run is broken, not slow.
DEADLINE_S: Final = 90.0
_WARM_WRITES: Final = 30
_LOOK_S: Final = 0.02
_STOP_S: Final = 40.0


class RunBroken(QuorateError):
    """A run could not be carried out, or what it measured means nothing."""


class NetworkStage:
    """A run's cluster. Times of events are monotonic seconds; what is noted counts from the begin."""

    def __init__(self, network: VirtualNetwork, directory: Path, rng: Random) -> None:
        self.network = network
        #: Of what is done to the network.
        self.rng = Random(rng.getrandbits(64))
        self.site = Site(network, directory)
        self.workload = Workload(self.site.members.controller_urls, self.site.secret, rng)
        self.begun = time.monotonic()
        self.events: list[DrillEvent] = []
        self.values: dict[str, float] = {}
        self.noted: dict[str, float | str] = {}
        self.controllers = [node.name for node in self.site.members.controllers.values()]
        #: Where the log was when the fault began.
        self._first = 0

    # --- the notebook --------------------------------------------------------------------------------

    def event(self, kind: EventKind, text: str, at: float | None = None) -> float:
        """Note what happens now, or happened at a moment; the moment."""
        at = time.monotonic() if at is None else at
        self.events.append(DrillEvent(at_s=round(at - self.begun, 3), kind=kind, text=text))
        return at

    def measure(self, name: str, value: float) -> None:
        """A value that something is expected of."""
        self.values[name] = round(value, 3)

    # --- looking -------------------------------------------------------------------------------------

    async def leader(self) -> str:
        """The machine of the active controller."""
        active = (await self.site.status()).quorum.active_id
        if active is None:
            raise RunBroken("there is no active controller where nothing was done yet")
        return self.site.members.controllers[active].name

    async def until(self, look: Callable[[], float | None], what: str) -> float:
        """Until there is a figure.

        Raises:
            RunBroken: not within the deadline. ProcessFailed: nor then, and a process has ended.
        """
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            figure = look()
            if figure is not None:
                return figure
            await asyncio.sleep(_LOOK_S)
        self.site.check()
        raise RunBroken(f"not within {DEADLINE_S:.0f} s: {what}")

    async def writes_again(self, since: float) -> None:
        """Measure how long after a moment a write was acknowledged that was begun after it; and one of each client."""
        workload = self.workload
        took = await self.until(lambda: workload.next_write(since), "a write is acknowledged")
        self.measure("next_write_s", took)
        self.event("seen", f"a write is acknowledged, {took:.2f} s later", since + took)
        took = await self.until(lambda: workload.every_client(since), "each client's writes are acknowledged")
        self.measure("every_client_s", took)
        self.event("seen", f"each standing client has written, {took:.2f} s later", since + took)

    async def last_until(self, moment: float) -> None:
        """Let the fault last, once it is measured, and note what clients had of it."""
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        self.event("repair", "the network works again", self.network.heal())

    async def kill(self, machine: str) -> None:
        """Kill a controller (its kernel closes its connections), measure, and start it again."""
        killed = self.event("fault", f"kill -9 {machine}")
        self.site.processes[machine].kill()
        await self.writes_again(killed)
        self.event("repair", f"start {machine}")
        await self.site.processes[machine].wait(_STOP_S)
        await self.site.processes[machine].start()

    def note_writes(self, begun: float, ended: float) -> None:
        """Note the durations of writes between two moments."""
        took = self.workload.latencies(begun)
        if took:
            self.noted["write_s_median"] = round(took[len(took) // 2], 3)
            self.noted["write_s_p99"] = round(took[len(took) * 99 // 100], 3)
        self.noted["longest_wait_s"] = round(self.workload.longest_wait(begun, ended), 2)

    # --- the run -------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Everything runs and is steady, and clients ask, while the block lasts; whatever happens nothing is left."""
        # All sockets that are made from here on are the clients'.
        self.network.places[CLIENTS].enter()
        try:
            await self.site.start()
            await self._steady()
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.workload.run(stop))
                try:
                    await self.until(self._is_warm, "clients write")
                    self._first = (await self.site.status()).quorum.applied_offset
                    yield
                    await self._conclude()
                finally:
                    stop.set()
            await self._examine()
        finally:
            await self._end()

    def _is_warm(self) -> float | None:
        return float(len(self.workload.acknowledged)) if len(self.workload.acknowledged) >= _WARM_WRITES else None

    async def _steady(self) -> None:
        await self.site.wait_for_controllers(DEADLINE_S)
        await self.site.wait_for_brokers(DEADLINE_S)

    async def _conclude(self) -> None:
        """Clients go on until all is well in a network that works."""
        self.network.heal()
        await self._steady()
        self.site.check()
        self.event("seen", "all controllers vote, all brokers are active")

    async def _examine(self) -> None:
        """Whether clients were told anything wrong; then the end, and what the log says."""
        workload = self.workload
        await workload.conclude()
        there = await self.site.topic_names()
        self.measure("lost_writes", sum(name not in there for name in workload.made))
        offset, digests = await self._digests()
        self.measure("nodes_that_differ", len(digests) - 1)
        await self._stop()
        log = read_evidence(map(self.site.metadata_directory, self.site.members.controllers), self._first, offset)
        self.measure("elections", len(log.elected))
        self.measure("fenced", sum(log.fenced.values()))
        wrong, undecided = await asyncio.to_thread(workload.history.check)
        self.measure("wrong_histories", 0 if wrong is None else 1)
        self.measure("undecided_histories", undecided)
        if wrong is not None:
            self.event("seen", wrong)
        elif not is_noticed(workload.history):
            raise RunBroken("the history was damaged and its checker found nothing")
        self._note()

    def _note(self) -> None:
        workload, switch = self.workload, self.network.figures()
        self.noted["calls_known"] = workload.history.known
        self.noted["calls_unknown"] = workload.history.unknown
        self.noted["writes_acknowledged"] = len(workload.acknowledged)
        self.noted["frames"] = switch.forwarded
        self.noted["frames_lost_by_the_rules"] = switch.lost
        self.noted["switch_late_ms_max"] = round(switch.late_ms_max, 1)
        self.measure("frames_lost_by_overload", switch.overload)

    async def _digests(self) -> tuple[int, set[str]]:
        """An offset, and the digests there of all controllers."""

        async def look() -> tuple[int, set[str]] | None:
            offset = (await self.site.status()).quorum.applied_offset
            try:
                return offset, {await self.site.client.digest_of(url, offset) for url in self.workload.urls}
            except (ApiError, NotSent, NoAnswer):
                return None  # one that is not there yet; the next look takes a newer offset

        return await self.site.until(look, "all controllers reach one offset", DEADLINE_S)

    async def _stop(self) -> None:
        async with asyncio.timeout(_STOP_S):
            await self.site.stop()

    async def _end(self) -> None:
        self.site.kill_all()
        await self.site.client.close()
        await asyncio.gather(*(process.wait(_STOP_S) for process in self.site.processes.values()))


#: What a scenario does between a steady begin and a healed end.
Act = Callable[[NetworkStage], Awaitable[None]]
