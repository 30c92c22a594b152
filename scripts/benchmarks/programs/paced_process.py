"""A voter with nothing on top of the quorum: it appends opaque batches, and reads linearizably, at steady rates."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from quorate.controller.process.settings import LogSettings
from quorate.controller.process.settings_parts import log_config
from quorate.metadata_log.batches.batch import build_batch, frame_record
from quorate.quorum.errors import NotLeader
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.scripts.benchmarks.process_tree import resident_bytes
from quorate.scripts.benchmarks.programs.member_process import Command, MemberProcess, quorum_config, run_member

_TICK_S: Final = 0.01


class PacedProcess(MemberProcess):
    """See the module."""

    _leader: int | None = None
    _epoch = -1
    _committed = 0
    _reads = 0
    _tasks: tuple[asyncio.Task[None], ...] = ()

    def commands(self) -> dict[str, Command]:
        """By name."""
        return {"status": self.status, "begin": self.begin, "end": self.end, "bounds": self.bounds}

    async def status(self) -> dict[str, Any]:
        """The state of this voter, and the memory that it uses."""
        status = self.runtime.node.status()
        return {
            "leader": self._leader,
            "leads": self.runtime.node.is_leader,
            "epoch": status.epoch,
            "log_end": status.log_end_offset,
            "durable_end": status.durable_end,
            "applied": status.applied_end,
            "connected": [peer.node_id for peer in status.peers if peer.is_connected],
            "committed": self._committed,
            "reads": self._reads,
            "resident_bytes": resident_bytes(),
        }

    async def bounds(self) -> dict[str, Any]:
        """Bytes that may be kept: of the log, and of what waits to be sent to one peer."""
        limits = quorum_config(self.plan, self.node_id).limits
        return {"log_bytes": log_config(LogSettings()).resident_bytes, "write_buffer_bytes": limits.write_buffer_bytes}

    async def begin(self, writes_per_s: int, payload_bytes: int, reads_per_s: int) -> dict[str, Any]:
        """Begin to append and to read, as the leader."""
        payload = build_batch(frame_record(0, None, bytes(payload_bytes)), 1, time.time_ns() // 1_000_000)
        loop = asyncio.get_running_loop()
        self._tasks = (loop.create_task(self._append(payload, writes_per_s)), loop.create_task(self._read(reads_per_s)))
        return {}

    async def end(self) -> dict[str, Any]:
        """Stop appending and reading."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return {}

    async def _append(self, payload: bytes, rate: int) -> None:
        begun, done = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - begun) * rate)
            for _ in range(due - done):
                self.runtime.node.append(self._epoch, payload, 1)
            done = due
            await asyncio.sleep(_TICK_S)

    async def _read(self, rate: int) -> None:
        while True:
            try:
                await self.runtime.read_barrier()
            except NotLeader:
                return
            self._reads += 1
            await asyncio.sleep(1 / rate)

    def on_commit(self, batches: CommittedBatches) -> None:
        """Counted."""
        self._committed += len(batches)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        """There is no state."""

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Appends are made in this epoch."""
        self._leader, self._epoch = leader_id, epoch


if __name__ == "__main__":
    run_member(PacedProcess)
