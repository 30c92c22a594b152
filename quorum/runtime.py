"""A node of the quorum in a real process: asyncio loop, sockets, clock and disk threads around ``QuorumNode``."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from random import Random
from typing import Final

from quorate.metadata_log.disk import DiskJob, drain
from quorate.metadata_log.errors import StorageError
from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import DiskFailed, NotLeader, Superseded
from quorate.quorum.host import QuorumListener
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.node import QuorumNode
from quorate.quorum.storage.disk_pace import DiskPace
from quorate.quorum.storage.disk_queue import DiskGroup
from quorate.quorum.storage.disk_thread import DiskThread
from quorate.quorum.storage.storage import NodeStorage
from quorate.quorum.storage.sync_watch import SyncWatch
from quorate.quorum.transport.frames import Frame
from quorate.quorum.transport.handshake import Secrets, no_secret
from quorate.quorum.transport.tls import QuorumTls
from quorate.quorum.transport.transport import PeerTransport

logger = logging.getLogger(__name__)

#: Seconds that a stop waits for the disk: without a word, and in all.
_QUIET_STOP: Final = 1.0
_STOP_MAX: Final = 10.0


class QuorumRuntime:
    """See the module. ``start`` and ``stop`` on the loop that it runs on; everything in between too."""

    def __init__(
        self,
        config: QuorumConfig,
        storage: NodeStorage,
        listener: QuorumListener,
        on_fatal: Callable[[BaseException], None],
        *,
        secrets: Secrets = no_secret,
        tls: QuorumTls | None = None,
        rng: Random | None = None,
    ) -> None:
        """``on_fatal`` must end the process: the node does nothing any more."""
        self._storage = storage
        self._on_fatal = on_fatal
        self._loop = asyncio.get_running_loop()
        self._is_pump_requested = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = math.inf
        self._is_stopping = False
        self._pace = DiskPace()
        self._watch = SyncWatch(config.node_id, config.timing.election_timeout_max)
        self._groups = DiskThread(f"log-disk-{config.node_id}", self._report_group)
        self._bulk = DiskThread(f"checkpoint-disk-{config.node_id}", self._report_bulk)
        self._transport = PeerTransport(config, self, secrets, tls)
        self.node = QuorumNode(config, storage, self, listener, rng or Random())

    async def start(self) -> None:
        """Listen, connect, and begin. Raises as ``PeerTransport.start``."""
        await self._transport.start()
        self.node.start()

    async def stop(self) -> None:
        """Give leadership up, finish what the disk does, and close. After 10 s a disk that hangs is a fatal fault."""
        if self._is_stopping:
            return
        self._is_stopping = True
        self.node.stop()
        if self._timer is not None:
            self._timer.cancel()
        self._watch.close()
        await self._transport.close()
        if await self._has_ended(self._groups, "log") and await self._has_ended(self._bulk, "checkpoint"):
            self._storage.close()

    async def _has_ended(self, thread: DiskThread, what: str) -> bool:
        for patience in (_QUIET_STOP, _STOP_MAX - _QUIET_STOP):
            if await self._loop.run_in_executor(None, thread.close, patience):
                return True
            logger.warning("stopping: waiting for the disk to finish a write of the %s, %g s at most", what, _STOP_MAX)
        # Its thread is a daemon, and all that was promised is durable.
        self._on_fatal(
            DiskFailed(TimeoutError(f"a write of the {what} did not end within {_STOP_MAX:g} s of stopping"))
        )
        return False

    async def read_barrier(self) -> int:
        """See ``QuorumNode.read_barrier``.

        Raises:
            NotLeader: this node does not lead, or lost leadership before the read was confirmed.
        """
        confirmed: asyncio.Future[int] = self._loop.create_future()

        def done(outcome: int | NotLeader) -> None:
            if confirmed.done():
                return
            if isinstance(outcome, NotLeader):
                confirmed.set_exception(outcome)
            else:
                confirmed.set_result(outcome)

        self.node.read_barrier(done)
        return await confirmed

    @property
    def port(self) -> int:
        """The port on which this node listens for its peers."""
        return self._transport.port

    def silence(self, peer: int) -> float | None:
        """See ``PeerTransport.silence``."""
        return self._transport.silence(peer)

    # --- Host ----------------------------------------------------------------------------------------

    def now(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def send(self, peer: int, channel: Channel, payload: bytes) -> None:
        self._transport.send(peer, channel, payload)

    def run_group(self, group: DiskGroup) -> bool:
        begun = time.monotonic()
        if not (group.is_short and self._pace.is_quick(begun)):
            self._groups.submit(group)
            return False
        self._watch.begin(group)
        try:
            drain(group)
        finally:
            self._watch.end()
        self._pace.took(begun, time.monotonic())
        return True

    def run_bulk_job(self, job: DiskJob) -> None:
        self._bulk.submit(job)

    def request_pump(self) -> None:
        if not self._is_pump_requested:
            self._is_pump_requested = True
            self._loop.call_soon(self._act, self._pump_if_requested)

    def next_turn(self, action: Callable[[], None]) -> None:
        self._loop.call_soon(self._act, action)

    def fatal(self, error: BaseException) -> None:
        self._on_fatal(error)

    # --- TransportOwner ------------------------------------------------------------------------------

    @property
    def is_voter(self) -> bool:
        return self.node.is_voter

    def connected(self, peer: int, directory_id: bytes, *, is_voter: bool, version: int) -> None:
        self.node.connected(peer, directory_id, is_voter=is_voter, version=version)

    def disconnected(self, peer: int) -> None:
        self.node.disconnected(peer)

    def received(self, peer: int, payload: Frame) -> None:
        self.node.receive(peer, payload)

    def read_through(self) -> None:
        """Do at once all that follows from the last message to be expected: a turn of the loop takes its time."""
        if not self.node.expects_more:
            self._act(self._pump_if_requested)

    def superseded(self, error: Superseded) -> None:
        self.node.fail(error)

    def failed(self, error: BaseException) -> None:
        self._on_fatal(error)

    # --- inside --------------------------------------------------------------------------------------

    def _act(self, action: Callable[..., None], *arguments: object) -> None:
        """Everything that the loop calls: it would log what is raised, and go on."""
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  # see ``quorum.fail_stop``
            self._on_fatal(error)

    def _pump_if_requested(self) -> None:
        if self._is_pump_requested:
            self._pump()

    def _pump(self) -> None:
        self._is_pump_requested = False
        if self._is_stopping:
            return
        due = self.node.pump()
        if due < self._timer_due:
            self._arm(due)

    def _arm(self, due: float) -> None:
        """One timer is out; it may be early, then it is armed again."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.call_later(max(due - time.monotonic(), 0.0), self._act, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._timer_due = math.inf
        self._pump()

    def _report_group(self, job: DiskJob, error: Exception | None) -> None:
        self._loop.call_soon_threadsafe(self._act, self._group_done, job, error)

    def _group_done(self, job: DiskJob, error: Exception | None) -> None:
        if error is None and isinstance(job, DiskGroup):
            self.node.disk_done(job)
        elif error is not None:
            self.node.fail(DiskFailed(error))

    def _report_bulk(self, job: DiskJob, error: Exception | None) -> None:
        self._loop.call_soon_threadsafe(self._act, self._bulk_done, error)

    def _bulk_done(self, error: Exception | None) -> None:
        if error is None or isinstance(error, StorageError):
            self.node.bulk_done(error)
        else:
            self.node.fail(DiskFailed(error))
