"""A voter with the whole controller on top of the quorum, without HTTP: it writes small events to itself."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from dataclasses import replace
from typing import Any, Final, NoReturn

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.bootstrap import fresh_records
from quorate.controller.process.assembly import NodeQuorum
from quorate.controller.process.composition import Machine, compose
from quorate.controller.process.settings_parts import default_parts
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.records import ConfigRecord, VersionedRecord
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.quorum.runtime import QuorumRuntime
from quorate.scripts.benchmarks.programs.member_process import Command, MemberProcess, run_member
from quorate.snapshots.image.image_parts import BROKER_RESOURCE

_FATAL: Final = 3
#: Configs written in turn, so that the state does not grow.
_NAMES: Final = tuple(f"bench.{number}" for number in range(64))


class _NoPlacement:
    """``controller.decisions.random_source.RandomSource``: nothing is placed here."""

    def next_int(self, bound: int) -> NoReturn:
        raise QuorateError("no topics are created here")

    def next_ints(self, bounds: object) -> NoReturn:
        raise QuorateError("no topics are created here")


class _Faults:
    """A fault ends the benchmark."""

    def fault(self, what: str, error: Exception) -> None:
        self.fatal(what, error)

    def fatal(self, what: str, error: Exception) -> None:
        sys.stderr.write(f"controller: {what}: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(_FATAL)


class BenchmarkController(MemberProcess):
    """See the module."""

    controller: QuorumController

    def attach(self, runtime: QuorumRuntime) -> None:
        """Put the controller on the quorum."""
        super().attach(runtime)
        parts = default_parts(self.node_id, self.plan.cluster_id)
        self.controller = compose(
            parts.config,
            replace(parts.role, idle_noop_interval_ms=0),
            parts.limits,
            fresh_records(),
            NodeQuorum(runtime.node),
            Machine(LoopScheduler(_Faults()), _Faults(), _NoPlacement(), lambda: uuid.uuid4().bytes),
        ).controller

    def commands(self) -> dict[str, Command]:
        """By name."""
        return {"status": self.status, "write": self.write, "wait_applied": self.wait_applied}

    async def status(self) -> dict[str, Any]:
        """The active controller, as far as this one knows, and processor time so far."""
        return {
            "leader": self.controller.active_id,
            "leads": self.controller.is_active,
            "cpu_s": time.process_time(),
        }

    async def write(self, in_flight: int, seconds: float) -> dict[str, Any]:
        """Keep ``in_flight`` write events on their way for a time; the latencies of all of them, in ms."""
        start = time.monotonic()
        batches = self.runtime.node.metrics.appended_batches
        groups = self.runtime.node.metrics.disk_groups
        latencies: list[float] = []
        async with asyncio.TaskGroup() as writers:
            for number in range(in_flight):
                writers.create_task(self._writer(number, start + seconds, latencies))
        return {
            "started_at": start,
            "end_offset": self.controller.applied_offset,
            "latencies_ms": latencies if in_flight == 1 else [],
            "events": len(latencies),
            "batches": self.runtime.node.metrics.appended_batches - batches,
            "disk_groups": self.runtime.node.metrics.disk_groups - groups,
        }

    async def _writer(self, number: int, stops_at: float, latencies: list[float]) -> None:
        name = _NAMES[number % len(_NAMES)]
        count = 0
        clock = time.perf_counter

        def decide(context: WriteContext) -> Decision[None]:
            record = ConfigRecord(BROKER_RESOURCE, "", name, str(count))
            return Decision((VersionedRecord(record, 0),), None)

        while time.monotonic() < stops_at:
            count += 1
            start = clock()
            await self.controller.append_write_event("bench", decide)
            latencies.append((clock() - start) * 1000)

    async def wait_applied(self, offset: int) -> dict[str, Any]:
        """The time at which this controller had applied everything below an offset."""
        applied = asyncio.Event()

        def look() -> None:
            if self.controller.applied_offset >= offset:
                applied.set()

        self.controller.on_stable = look
        look()
        await applied.wait()
        return {"at": time.monotonic()}

    def on_commit(self, batches: CommittedBatches) -> None:
        """See ``QuorumListener``."""
        self.controller.on_commit(batches)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        """See ``QuorumListener``."""
        raise QuorateError(f"a fresh cluster has no checkpoint to load: {reader.path}")

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """See ``QuorumListener``."""
        self.controller.on_leader_change(leader_id, epoch)


if __name__ == "__main__":
    run_member(BenchmarkController)
