"""Brokers as a part of any asyncio program: no signal handlers, no HTTP API of their own, nothing on standard output.

A program may have several workers in one event loop, of one cluster or of several.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from quorate.broker.assembly import assemble
from quorate.broker.host import BrokerHost, BrokerReadiness
from quorate.broker.library_log import log_to_the_program
from quorate.broker.machine import on_this_machine
from quorate.broker.own_tasks import TaskCancelled
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.raised_faults import RaisedFaults
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.settings import BrokerSettings
from quorate.controller.identity.secrets import shown
from quorate.metadata_log.arguments import checked_call, checked_calls
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.image.image import MetadataImage

_CANCELLED: Final = "something in this program cancelled the worker's tasks"


class WorkerEnded(QuorateError):
    """The brokers of a worker are over though nobody stopped them, as when another process took an id of theirs.

    Or something else in the program has cancelled their tasks.
    """


class WorkerNotReady(QuorateError):
    """Not all brokers of a worker were unfenced in time; the sentence says what is missing."""


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """The facts that a broker of a worker can count on."""

    #: Seconds: before that no controller can have ended its session; -inf = there is none. By the clock
    #: ``time.CLOCK_BOOTTIME`` of ``time.clock_gettime``; where the system has none by ``time.CLOCK_MONOTONIC``.
    valid_until: float
    #: Whether that is so now.
    is_valid: bool
    #: Under which it is registered; None = it is not.
    broker_epoch: int | None


@checked_calls
class Worker:
    """Brokers at work. Made by ``worker``; all methods belong to its event loop."""

    def __init__(self, host: BrokerHost, replicas: ReplicaManager) -> None:
        self._host = host
        self._replicas = replicas
        self._is_stop_asked = False
        self._over = asyncio.Event()
        self._looked = asyncio.Event()
        host.on_change = self._look

    @property
    def image(self) -> MetadataImage:
        """The newest state of the metadata; an empty one before the first."""
        return self._host.publishers.image

    def readiness(self) -> list[BrokerReadiness]:
        """The readiness of each of its brokers, by id."""
        return self._host.readiness()

    def session(self, broker_id: int) -> WorkerSession:
        """The facts that a broker here can count on now.

        To be asked whenever something is answered that must not be stale. See ``ReplicaManager.has_session``.
        """
        station = self._replicas.station
        until_ms = -float("inf") if station is None else station.session_valid_until_ms(broker_id)
        is_valid = self._replicas.has_session(broker_id)
        return WorkerSession(until_ms / 1000, is_valid, self._replicas.broker_epoch(broker_id))

    async def ready(self, timeout_s: float = 60.0) -> None:
        """Wait until all of its brokers are unfenced, its image shows it, and they count on their sessions.

        Raises:
            WorkerNotReady: they were not in time, or are over.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while not self._is_ready:
                    if self._over.is_set():
                        raise WorkerNotReady(f"the worker is over: {self._troubles()}")
                    self._looked.clear()
                    await self._looked.wait()
        except TimeoutError as error:
            raise WorkerNotReady(f"not ready within {timeout_s:g} s: {self._troubles()}") from error

    async def stop(self) -> None:
        """Leave in good order: others lead first. Asked twice, at once. Returns when all of its brokers are over.

        It takes ``lifecycle.shutdown_timeout_ms`` at most.
        """
        self._is_stop_asked = True
        self._host.request_stop()
        await self._over.wait()

    async def over(self) -> None:
        """Wait until all of its brokers are over, for whatever reason."""
        await self._over.wait()

    async def live(self, run: Callable[[], Awaitable[None]]) -> None:
        """From the beginning to the end; ``worker`` runs it.

        Raises:
            WorkerEnded: without having been asked. QuorateError: as ``BrokerHost.run``.
        """
        try:
            await run()
        finally:
            self._over.set()
            self._look()
        if not self._is_stop_asked:
            raise WorkerEnded(self._troubles())

    @property
    def _is_ready(self) -> bool:
        return self._host.is_ready and all(self._replicas.has_session(id_) for id_ in self._host.settings.ids)

    def _look(self) -> None:
        self._looked.set()

    def _troubles(self) -> str:
        said = [
            f"broker {one.broker_id} is {one.state.value}, {one.trouble or 'without known trouble'}"
            for one in self.readiness()
            if not one.is_ready
        ]
        return "; ".join(said) or "all brokers are ready"


@checked_call
@asynccontextmanager
async def worker(
    settings: BrokerSettings,
    replicas: ReplicaManager,
    publishers: Sequence[MetadataPublisher] = (),
    shared_secret: bytes | None = None,
) -> AsyncIterator[Worker]:
    """Play brokers for as long as the block lasts, beside whatever else runs in this event loop.

    At the end of the block they leave in good order; where it raises, or is cancelled, they end at once, as killed.
    A worker that ends by itself cancels the block, and the block raises why.

    Args:
        settings: ``settings.http`` and ``settings.logging`` are not looked at: a worker serves no HTTP, and its
            program has a log of its own.
        replicas: decides who is in sync, and is told what its brokers lead (``broker.replicas.ServiceReplicas``). It
            is one worker's at a time.
        shared_secret: what the controllers' HTTP API asks for, or a token; in place of
            ``settings.shared_secret_file``, which is read where this is None.

    Raises:
        WorkerEnded: the brokers are over, and nobody stopped them.
        InvalidSettings: the secret's file cannot be used. InvalidArgument: the secret cannot be one, or
            ``replicas`` is at work for another worker.
        QuorateError: the worker could not start, or must not go on (see ``BrokerHost.run``).
    """
    log_to_the_program()
    secret = shown(settings.load_secrets()) if shared_secret is None else shared_secret
    async with on_this_machine(settings, secret, settings.tls.load()) as environment:
        assembly = assemble(settings, environment, publishers, replicas)
        one = Worker(assembly.host, replicas)
        try:
            async with _beside(one, lambda: one.live(lambda: assembly.run(None))):
                yield one
        finally:
            replicas.station = None  # so that another worker may have it


@asynccontextmanager
async def _beside(one: Worker, live: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run a worker beside the block."""
    faults, is_ending = RaisedFaults(), False

    async def run() -> None:
        try:
            await live()
        except asyncio.CancelledError:
            if not is_ending:
                faults.note(WorkerEnded(_CANCELLED))
            raise
        except TaskCancelled as error:
            faults.note(WorkerEnded(f"{_CANCELLED}: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the block raises it
            faults.note(error)

    task = asyncio.create_task(run(), name="worker")
    try:
        async with faults:
            yield
            if not task.done():
                await one.stop()
    finally:
        is_ending = True
        task.cancel()
        await asyncio.wait({task})
