"""A spectator: follows the metadata without being registered, for routers, dashboards and whoever else only looks on.

It is the brokers' loader and publishers without a broker: the same checks, the same order, the same images.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.host import loader_timing
from quorate.broker.machine import real_machine
from quorate.broker.metadata.loader import MetadataLoader
from quorate.broker.publisher import ControllerEpoch, MetadataPublisher, PublisherSet
from quorate.broker.raised_faults import RaisedFaults
from quorate.broker.settings import FeedSettings, LifecycleSettings
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.metadata_log.arguments import checked_call, checked_calls
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.image.image import MetadataImage

#: How long the log may take to be read to its end, unless it is said otherwise.
CATCH_UP_MS: Final = 30_000.0
#: As brokers are told of it: after a session without an answer they may have been fenced.
SILENCE_MAX_MS: Final = float(LifecycleSettings().session_timeout_ms)


class WatchTimeout(QuorateError, TimeoutError):
    """The time was up before the awaited state had come. The message names the watcher's position."""


class WatchRefused(QuorateError):
    """No controller lets this program read the log: its secret or token is wrong, or CLUSTER_ACTION is missing."""


class WatchEnded(QuorateError):
    """The watcher follows nothing any more: its block is over, or the log has what this version cannot replay.

    Or something else in the program has cancelled its task.
    """


@checked_calls
class Watcher:
    """Made by ``watch``. For the tasks of one event loop."""

    def __init__(self, loader: MetadataLoader) -> None:
        self._loader = loader
        self._has_ended = False

    @property
    def image(self) -> MetadataImage:
        """The newest state; the empty one before the log was read to its end for the first time."""
        return self._loader.publishers.image

    @property
    def offset(self) -> int:
        """Last offset that ``image`` contains; -1 = none."""
        return self.image.provenance.last_contained_offset

    @property
    def epoch(self) -> int:
        """Leader epoch of the batch that ``image`` ends with."""
        return self.image.provenance.epoch

    @property
    def cluster_id(self) -> str:
        """Of the cluster that is watched; empty before any controller has answered."""
        return self._loader.cluster_id

    @property
    def controller(self) -> ControllerEpoch:
        """The leader of the quorum, and the newest epoch heard of; ``leader_id`` is None if nobody is known to lead."""
        return self._loader.controller

    @property
    def cut_off_since(self) -> datetime | None:
        """The time at which a controller answered last, in UTC, if none has for too long; None while some do."""
        since_ms = self._loader.cut_off_since_ms
        return None if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC)

    @property
    def trouble(self) -> str | None:
        """The trouble of the last request, in a sentence; None when it was answered."""
        return self._loader.trouble

    def install(self, publisher: MetadataPublisher) -> None:
        """Add a publisher; if there is an image, it is told at once.

        Raises:
            DuplicatePublisher: one of that name is there.
        """
        self._loader.publishers.install(publisher)

    def remove(self, name: str) -> None:
        """Close a publisher and forget it; nothing happens if there is none of that name."""
        self._loader.publishers.remove(name)

    async def wait_for(
        self, is_true: Callable[[MetadataImage], bool], timeout_ms: float | None = None
    ) -> MetadataImage:
        """The first image, from the present one on, of which this is true. Of images that follow fast some are skipped.

        Raises:
            WatchTimeout: there was none within ``timeout_ms``; None: it is waited for as long as it takes.
            WatchEnded: there will be none.
        """
        found: list[MetadataImage] = []

        def look() -> bool:
            if self._loader.publishers.is_published and is_true(self.image):
                found.append(self.image)
            return bool(found)

        await self._wait(look, timeout_ms)
        return found[0]

    async def wait_for_first(self, timeout_ms: float) -> None:
        """Wait for the first image.

        Raises:
            WatchRefused: at once, where no controller lets this program read. Others as ``wait_for``.
        """
        loader = self._loader
        await self._wait(lambda: loader.publishers.is_published or loader.refusal is not None, timeout_ms)
        if not loader.publishers.is_published:
            raise WatchRefused(f"nothing can be watched: {loader.refusal}")

    async def wait_until_cut_off(self, timeout_ms: float | None = None) -> None:
        """Wait until no controller has answered for too long. Raises as ``wait_for``."""
        await self._wait(lambda: self._loader.is_cut_off, timeout_ms)

    async def wait_until_back(self, timeout_ms: float | None = None) -> None:
        """Wait until controllers answer, if none does. Raises as ``wait_for``."""
        await self._wait(lambda: not self._loader.is_cut_off, timeout_ms)

    def end(self) -> None:
        """Let everybody go who waits. Called when the loader has ended."""
        self._has_ended = True
        self._loader.publishers.close()

    def _fault_of(self, task: asyncio.Task[None]) -> Exception | None:
        """The fault that the loader's task has ended with; None if it was to end."""
        if task.cancelled():
            is_meant = self._has_ended
            return None if is_meant else WatchEnded("something in this program cancelled the watcher's task")
        error = task.exception()
        if not isinstance(error, Exception):
            return None
        return self._ended() if self._loader.fault is error else error

    async def _wait(self, is_true: Callable[[], bool], timeout_ms: float | None) -> None:
        limit = asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000)
        try:
            async with limit:
                await self._loader.wait_until(lambda: self._is_over or is_true())
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise WatchTimeout(f"not so within {timeout_ms:g} ms: {self._standing()}") from error
        if self._is_over:
            raise self._ended()

    @property
    def _is_over(self) -> bool:
        return self._has_ended or self._loader.fault is not None

    def _ended(self) -> WatchEnded:
        ended = WatchEnded(str(self._loader.fault or "this watcher's block is over"))
        ended.__cause__ = self._loader.fault
        return ended

    def _standing(self) -> str:
        if not self._loader.publishers.is_published:
            return f"there is no image yet: {self.trouble or 'the log is still being read'}"
        trouble = "" if self.trouble is None else f"; {self.trouble}"
        return f"the image is at offset {self.offset}{trouble}"


@checked_call
@asynccontextmanager
async def watch(
    controllers: Sequence[str],
    publishers: Sequence[MetadataPublisher] = (),
    *,
    shared_secret: bytes | None = None,
    tls: TlsContexts | None = None,
    insecure: bool = False,
    catch_up_ms: float | None = CATCH_UP_MS,
    silence_max_ms: float = SILENCE_MAX_MS,
) -> AsyncIterator[Watcher]:
    """Follow a cluster for the time of a block, which begins when the log has been read to its end.

    It reconnects by itself, to any of the controllers. It takes no signal, and prints nothing.

    Args:
        controllers: ``host:port`` or URLs of some controllers or of all; one of them is followed at a time.
        publishers: are told of every change, all in the order of the log.
        shared_secret, tls, insecure: as for ``ControllerClient``.
        catch_up_ms: how long to wait for the first image; None: not at all, the block begins at once without one.
        silence_max_ms: after so long without an answer of any controller none is known: ``cut_off_since`` says so, and
            publishers are told that nobody leads. No less than 2.5 s, for so long an answer may take.

    Raises:
        InvalidUrl, SecretInPlaintext: as ``ControllerClient``. DuplicatePublisher: two have one name.
        WatchTimeout: there was no image within ``catch_up_ms``. WatchRefused: there will be none, for want of a right.
        WatchEnded: the log has what this version cannot replay, or the program cancelled its task.
    """
    machine, request_ms = real_machine(), LifecycleSettings().request_timeout_ms
    timing, first = loader_timing(FeedSettings(), silence_max_ms), int(machine.draw() * max(1, len(controllers)))
    faults = RaisedFaults()
    async with connect_controllers(controllers, shared_secret, request_ms, tls=tls, insecure=insecure) as connected:
        loader = MetadataLoader(connected.feeds, PublisherSet(publishers), timing, machine, first)
        watcher = Watcher(loader)

        def note(task: asyncio.Task[None]) -> None:
            if (fault := watcher._fault_of(task)) is not None:
                faults.note(fault)

        task = asyncio.create_task(loader.run(), name="metadata-watcher")
        task.add_done_callback(note)
        try:
            async with faults:
                if catch_up_ms is not None:
                    await watcher.wait_for_first(catch_up_ms)
                yield watcher
        finally:
            watcher.end()
            task.cancel()
            await asyncio.wait([task])
        faults.check()
