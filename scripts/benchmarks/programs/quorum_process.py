"""A voter with nothing on top of the quorum: it appends opaque batches as fast as they commit."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from quorate.metadata_log.batches.batch import build_batch, frame_record
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.scripts.benchmarks.programs.member_process import Command, MemberProcess, run_member

#: Batches that are begun in one turn of the loop at most, so that the sockets get their share.
_APPENDS_PER_TURN: Final = 128


class QuorumProcess(MemberProcess):
    """See the module."""

    _leader: int | None = None
    _epoch = -1
    _payload = b""
    _committed = 0
    _missing = 0
    _is_refilling = False
    _stops_at = 0.0
    _ended: asyncio.Future[None] | None = None

    def commands(self) -> dict[str, Command]:
        """By name."""
        return {"status": self.status, "append": self.append}

    async def status(self) -> dict[str, Any]:
        """The leader, as far as this voter knows, and processor time so far."""
        return {"leader": self._leader, "leads": self.runtime.node.is_leader, "cpu_s": time.process_time()}

    async def append(self, payload_bytes: int, in_flight: int, seconds: float) -> dict[str, Any]:
        """Keep ``in_flight`` batches of one opaque record on their way for a time."""
        self._payload = build_batch(frame_record(0, None, bytes(payload_bytes)), 1, time.time_ns() // 1_000_000)
        start, self._committed = time.monotonic(), 0
        groups = self.runtime.node.metrics.disk_groups
        self._stops_at = start + seconds
        self._ended = asyncio.get_running_loop().create_future()
        self._missing = in_flight
        self._refill()
        await self._ended
        elapsed = time.monotonic() - start
        return {
            "commits": self._committed,
            "elapsed_s": elapsed,
            "disk_groups": self.runtime.node.metrics.disk_groups - groups,
        }

    def on_commit(self, batches: CommittedBatches) -> None:
        """A place is free for every batch that is committed."""
        if self._ended is not None:
            self._committed += len(batches)
            self._missing += len(batches)
            self._refill_soon()

    def _refill(self) -> None:
        self._is_refilling = False
        if self._ended is None or self._ended.done():
            return
        if time.monotonic() >= self._stops_at:
            self._ended.set_result(None)
            self._ended = None
            return
        count = min(self._missing, _APPENDS_PER_TURN)
        self._missing -= count
        append, epoch, payload = self.runtime.node.append, self._epoch, self._payload
        for _ in range(count):
            append(epoch, payload, 1)
        if self._missing:
            self._refill_soon()

    def _refill_soon(self) -> None:
        if not self._is_refilling:
            self._is_refilling = True
            asyncio.get_running_loop().call_soon(self._refill)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        """There is no state."""

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Appends are made in this epoch."""
        self._leader, self._epoch = leader_id, epoch


if __name__ == "__main__":
    run_member(QuorumProcess)
