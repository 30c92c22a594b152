"""The tour's steps. Each one does something to a running cluster, and fails the tour if what it shows is not so."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rich.padding import Padding
from rich.text import Text

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatableTopic,
    CreateTopicsRequest,
    DescribedPartition,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.scripts.captures import STATIC_M2
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_twin
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.tour.digests import digests_at_one_offset
from quorate.scripts.tour.writes import WriteStream

#: Died before the other; 13 holds the newest data of what they shared.
_DEAD_FIRST, _DEAD_LAST = 14, 13
_DEADLINE_S: Final = 60.0
_SESSION_MS: Final = 3_000
_HEARTBEAT_MS: Final = 500
_WRITES_BEFORE: Final = 20
_WRITES_AFTER: Final = 20
_PORTS: Final = 24


class TourFailed(QuorateError):
    """Something that the tour was to show is not so."""


def run_tour(console: Screen) -> int:
    """The whole tour; exit code 0 only if all of it held."""
    directory = Path(tempfile.mkdtemp(prefix="quorate-tour-", dir="."))
    try:
        asyncio.run(_run(console, directory))
    except QuorateError as error:
        console.print(Text.assemble(("The tour failed:", "bold red"), f" {error}"))
        console.print(f"The processes' logs are in {directory / 'logs'}.")
        return exit_codes.REFUSED
    except KeyboardInterrupt:
        shutil.rmtree(directory)
        return exit_codes.INTERRUPTED
    shutil.rmtree(directory)
    return exit_codes.DONE


async def _run(console: Screen, directory: Path) -> None:
    plan = make_twin(directory, STATIC_M2, Ports.of(free_ports(_PORTS)), "all", is_secured=True)
    options = LocalOptions(
        controller={"BROKERS__SESSION_TIMEOUT_MS": str(_SESSION_MS)},
        broker={"LIFECYCLE__HEARTBEAT_INTERVAL_MS": str(_HEARTBEAT_MS)},
    )
    async with AsyncExitStack() as stack:
        cluster = LocalCluster(directory, plan, options)
        stack.push_async_callback(cluster.stop)
        plan.require_ports()
        await Tour(console, cluster).run()


class Tour:
    """One run. Times are measured from the outside, by polling."""

    def __init__(self, console: Screen, cluster: LocalCluster) -> None:
        self._console = console
        self._cluster = cluster
        self._client: ControllerClient = cluster.client
        self._started = time.monotonic()

    async def run(self) -> None:
        """All steps, in order."""
        steps: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("A twin of a real cluster", self._look),
            ("The dead brokers come back", self._revive),
            ("A new topic", self._create),
            ("A partition moves", self._move),
            ("A broker is killed", self._kill_broker),
            ("The active controller is killed under writes", self._kill_controller),
            ("Both come back", self._restart),
            ("Everybody agrees", self._compare),
        ]
        for number, (title, step) in enumerate(steps, 1):
            self._console.print(Text(f"\n{number}. {title}", style="bold"))
            await step()
        took = f", in {time.monotonic() - self._started:.0f} s."
        self._console.print(Text.assemble(("\nAll of it held", "bold green"), took))

    # --- steps ---------------------------------------------------------------------------------------

    async def _look(self) -> None:
        cluster = self._cluster
        begun = time.monotonic()
        for process in cluster.controllers.values():
            await process.start()
        status = await cluster.wait_for_controllers(_DEADLINE_S)
        self._say(
            f"Three controllers agree on the metadata of Kafka cluster {cluster.plan.source_cluster_id}, "
            f"{_since(begun)} after their processes were started; controller {status.quorum.active_id} is active."
        )
        fenced = sorted(broker.id for broker in status.brokers if broker.state == "fenced")
        self._require(fenced == [_DEAD_LAST, _DEAD_FIRST], f"brokers 13 and 14 should be fenced, not {fenced}")
        self._require(status.partitions.total == 3061, f"3061 partitions, not {status.partitions.total}")
        self._require(status.partitions.offline == 782, f"782 offline partitions, not {status.partitions.offline}")
        self._say(
            f"{status.topics} topics, {status.partitions.total} partitions; brokers {fenced} are dead, "
            f"{status.partitions.offline} partitions have no leader, "
            f"{status.partitions.reassigning} reassignments are stuck."
        )

    async def _revive(self) -> None:
        cluster = self._cluster
        for broker_id in (11, 12):
            await cluster.brokers[broker_id].start()
        offline = (await self._until_active(11, 12)).partitions.offline
        begun = time.monotonic()
        # The last one to die first: it has the most of what was acknowledged.
        for broker_id in (_DEAD_LAST, _DEAD_FIRST):
            await cluster.brokers[broker_id].start()
            await self._until_active(broker_id)
        status = await self._until(lambda s: s.partitions.offline == 0, "no partition is offline")
        held = status.elections
        self._require(held.from_eligible == 0, f"{held.from_eligible} partitions were led again from their ELR")
        unclean = held.last_known + held.unclean
        self._require(unclean == offline, f"{unclean} partitions were led again uncleanly, not {offline}")
        self._say(
            f"Brokers {_DEAD_LAST} and {_DEAD_FIRST} were started; {_since(begun)} later all "
            f"{status.partitions.total} partitions are led again. Both had crashed, so no ELR counts on them any "
            f"more, as in Kafka: {held.last_known} have their last known leader back, {held.unclean} another replica, "
            "and what these had not flushed is lost."
        )
        await self._until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
        self._say(f"{_since(begun)} after their start all ISRs are full (no data are moved: the copying is a model).")

    async def _create(self) -> None:
        begun = time.monotonic()
        request = CreateTopicsRequest(topics=[CreatableTopic(name="tour", num_partitions=12, replication_factor=3)])
        reply = await self._client.create_topics(request)
        taken = _since(begun)
        self._require(reply.topics[0].error_code == ErrorCode.NONE, f"topic tour: {reply.topics[0].error_message}")
        partitions = await self._partitions("tour")
        self._require(len(partitions) == 12 and all(p.leader_id >= 0 for p in partitions), "12 partitions with leaders")
        self._say(f"Topic tour, 12 partitions of 3 replicas over 2 racks, is durable on a majority after {taken}.")

    async def _move(self) -> None:
        before = (await self._partitions("tour"))[0]
        target = [broker for broker in (11, 12, 13, 14) if broker not in before.replica_nodes[:1]]
        begun = time.monotonic()
        await self._client.alter_partition_reassignments(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="tour", partitions=[ReassignablePartition(partition_index=0, replicas=target)]
                    )
                ]
            )
        )

        async def look() -> DescribedPartition | None:
            partition = (await self._partitions("tour"))[0]
            is_done = not partition.adding_replicas and not partition.removing_replicas
            return partition if is_done and partition.replica_nodes == target else None

        after = await self._cluster.until(look, f"tour-0 has moved to {target}", _DEADLINE_S)
        self._require(after.leader_id in target, f"tour-0 is led by {after.leader_id}, not by one of {target}")
        self._say(
            f"tour-0 moved from {before.replica_nodes} to {target} in {_since(begun)}; its leader is {after.leader_id}."
        )

    async def _kill_broker(self) -> None:
        victim = 12
        led = await self._led_by(victim)
        self._require(led > 0, f"broker {victim} leads nothing")
        begun = time.monotonic()
        self._cluster.brokers[victim].kill()
        await self._until(lambda s: _state(s, victim) == "fenced", f"broker {victim} is fenced")
        fenced_after = _since(begun)
        left = await self._led_by(victim)
        self._require(left == 0, f"fenced broker {victim} still leads {left} partitions")
        self._say(
            f"Broker {victim} was killed (kill -9) and fenced {fenced_after} later, at the end of its session of "
            f"{_SESSION_MS} ms; the {led} partitions that it led are led by others."
        )
        await self._until(lambda s: s.partitions.offline == 0, "no partition is offline")

    async def _kill_controller(self) -> None:
        status = await self._cluster.status()
        victim = status.quorum.active_id
        assert victim is not None
        stream, stop = WriteStream(self._client, "stream"), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(stream.run(stop))
            try:
                await self._written(stream, _WRITES_BEFORE)
                killed_at = time.monotonic()
                self._cluster.controllers[victim].kill()
                await self._written(stream, len(stream.acknowledged) + _WRITES_AFTER)
            finally:
                stop.set()
        status = await self._until(lambda s: s.quorum.active_id not in (None, victim), "another controller is active")
        names = await self._cluster.topic_names()
        lost = set(stream.acknowledged) - names
        self._require(not lost, f"acknowledged topics are gone: {sorted(lost)}")
        self._say(
            f"Controller {victim} was killed (kill -9) under a stream of writes. The longest wait of a write was "
            f"{stream.longest_gap_ms(killed_at):.0f} ms; controller {status.quorum.active_id} goes on in epoch "
            f"{status.quorum.epoch}. All {len(stream.acknowledged)} acknowledged topics are there; "
            f"writes whose outcome is unknown: {len(stream.unknown)}."
        )

    async def _restart(self) -> None:
        begun = time.monotonic()
        await self._cluster.start()
        await self._cluster.wait_for_controllers(_DEADLINE_S)
        await self._cluster.wait_for_brokers(_DEADLINE_S)
        await self._until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
        self._say(f"The killed controller and the killed broker are back, and all ISRs full, after {_since(begun)}.")

    async def _compare(self) -> None:
        offset, digests = await digests_at_one_offset(self._cluster, _DEADLINE_S)
        different = set(digests.values())
        self._require(len(different) == 1, f"digests differ at offset {offset}: {digests}")
        self._say(f"{len(digests)} nodes ({', '.join(digests)}) have the same state at offset {offset}:")
        self._say(f"digest {different.pop()}")

    # --- looking -------------------------------------------------------------------------------------

    def _say(self, sentence: str) -> None:
        self._console.print(Padding(Text(sentence), (0, 0, 0, 3), expand=False))

    def _require(self, is_so: bool, what: str) -> None:
        if not is_so:
            raise TourFailed(what)

    async def _until(self, is_so: Callable[[StatusReply], bool], what: str) -> StatusReply:
        async def look() -> StatusReply | None:
            status = await self._cluster.status()
            return status if is_so(status) else None

        return await self._cluster.until(look, what, _DEADLINE_S)

    async def _until_active(self, *broker_ids: int) -> StatusReply:
        return await self._until(
            lambda s: all(_state(s, broker) == "active" for broker in broker_ids), f"brokers {broker_ids} are active"
        )

    async def _written(self, stream: WriteStream, count: int) -> None:
        async def look() -> bool | None:
            return True if len(stream.acknowledged) >= count else None

        await self._cluster.until(look, f"{count} writes are acknowledged", _DEADLINE_S)

    async def _partitions(self, topic: str) -> list[DescribedPartition]:
        # Any controller answers from what it has heard; what was just written is to be seen.
        return (await self._client.describe_topic(topic, is_linearizable=True)).topic.partitions

    async def _all_partitions(self) -> list[DescribedPartition]:
        return [p for name in sorted(await self._cluster.topic_names()) for p in await self._partitions(name)]

    async def _led_by(self, broker_id: int) -> int:
        return sum(p.leader_id == broker_id for p in await self._all_partitions())


def _state(status: StatusReply, broker_id: int) -> str | None:
    return next((broker.state for broker in status.brokers if broker.id == broker_id), None)


def _since(begun: float) -> str:
    seconds = time.monotonic() - begun
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
