"""The metadata loader: pulls committed batches from any controller, replays them, hands images to publishers.

One task owns it (``run``); everything it offers to others is read on the same event loop. Answers are checked before
anything is replayed, so a bad controller costs a move to the next one. What cannot be replayed although it is
whole ends the process: its image would not be the cluster's any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.broker.controllers.checkpoint_fetch import FetchedCheckpoint, checkpoint_contents, fetch_checkpoint
from quorate.broker.controllers.feed import (
    LOG_BEGIN,
    BatchesAnswer,
    CheckedBatch,
    ControllerStatus,
    FeedForbidden,
    FeedPosition,
    FeedUnavailable,
    FollowedFeed,
    PositionRefused,
    UntrustworthyAnswer,
    check_batches,
)
from quorate.broker.controllers.rotation import Rotation
from quorate.broker.environment import BrokerMachine
from quorate.broker.library_log import LibraryLog
from quorate.broker.publisher import UNKNOWN_CONTROLLER, ControllerEpoch, Manifest, PublisherSet
from quorate.metadata_log.cycle_collector import collector_resting
from quorate.metadata_log.errors import MalformedData, QuorateError, UnsupportedRecord
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import EMPTY_UNCOUNTED_IMAGE, MetadataImage
from quorate.snapshots.image.image_history import ImageHistory
from quorate.snapshots.replay.replay_state import ReplayState

log = LibraryLog(__name__)

#: Records after which what was replayed is published, though more of the answer is left: an answer holds a quarter of a
#: million changes of partitions, with which publishers would keep the loop for a tenth of a second.
RECORDS_PUBLISHED_TOGETHER: Final = 4_096


class LoaderFault(QuorateError):
    """A committed batch that this program cannot replay. The process must not go on."""


@dataclass(frozen=True, slots=True)
class LoaderTiming:
    """Waits (milliseconds) and sizes (bytes) of the loader's requests."""

    #: How long a controller may hold back an answer when there is nothing new.
    wait_ms: int
    #: Most bytes of batches, or of a checkpoint piece, in one answer.
    bytes_max: int
    retry_max_ms: float
    #: When no controller has answered for so long, none is known.
    silence_max_ms: float
    #: Wait after all controllers have failed in turn; doubled each round up to ``retry_max_ms``.
    retry_first_ms: float = 50.0


@dataclass(slots=True)
class LoaderCounters:
    """The counts of a loader's work, for metrics."""

    batches: int = 0
    bytes: int = 0
    replay_ms: float = 0.0
    checkpoint_loads: int = 0
    #: Answers that were refused as untrustworthy.
    refused_answers: int = 0
    #: Calls to a controller that failed.
    failed_calls: int = 0
    #: Moves from one controller to another.
    switches: int = 0


class MetadataLoader:
    """See the module's rules."""

    def __init__(
        self,
        feeds: Sequence[FollowedFeed],
        publishers: PublisherSet,
        timing: LoaderTiming,
        machine: BrokerMachine,
        first_feed: int = 0,
    ) -> None:
        self.publishers = publishers
        self.counters = LoaderCounters()
        self.history = ImageHistory()
        #: What the controller last heard of said of itself; None before any did.
        self.status: ControllerStatus | None = None
        #: Whether everything that was committed when the loader began has been replayed and published.
        self.is_caught_up = False
        #: The last failure, None while all is well; for people.
        self.trouble: str | None = None
        #: The last refusal to let this process read, by a controller asked since one last let it.
        self._forbidden: str | None = None
        #: When a controller answered last (milliseconds since 1970), if none has for too long; None: one has.
        self.cut_off_since_ms: float | None = None
        #: Why the loader has ended by itself.
        self.fault: LoaderFault | None = None
        self._feeds = feeds
        self._timing = timing
        self._now_ms = machine.now_ms
        self._wall_ms = machine.wall_ms
        self._sleep_ms = machine.sleep_ms
        self._rotation = Rotation(len(feeds), first_feed, timing.retry_first_ms, timing.retry_max_ms, machine.draw)
        self._state = ReplayState(EMPTY_UNCOUNTED_IMAGE)
        self._position = LOG_BEGIN
        #: When a controller was heard of last; at first, when the loader was made.
        self._heard_ms = machine.now_ms()
        self._silence: asyncio.TimerHandle
        self._changed = asyncio.Event()

    # --- what others may look at ---------------------------------------------------------------------

    @property
    def image(self) -> MetadataImage:
        """The newest image outside any open transaction, published or not."""
        return self._state.stable

    @property
    def position(self) -> FeedPosition:
        """The position of the loader in the log; ahead of the image inside a transaction."""
        return self._position

    @property
    def last_applied_offset(self) -> int:
        """Last offset that the image contains; -1 = none. What heartbeats report."""
        return self._state.stable.provenance.last_contained_offset

    @property
    def feed_name(self) -> str:
        """The controller that is being followed."""
        return self._feeds[self._rotation.index].name

    @property
    def cluster_id(self) -> str:
        """Of the cluster that is followed; "" before any controller was heard."""
        return "" if self.status is None else self.status.cluster_id

    @property
    def lag(self) -> int | None:
        """Committed records not replayed yet, as far as is known; None before any controller was heard."""
        return None if self.status is None else max(0, self.status.high_watermark - self._position.offset)

    @property
    def controller(self) -> ControllerEpoch:
        """The leader of the quorum, as the controller last heard of said; nobody known while cut off from all."""
        if self.status is None:
            return UNKNOWN_CONTROLLER
        return ControllerEpoch(None if self.is_cut_off else self.status.leader_id, self.status.epoch)

    @property
    def is_cut_off(self) -> bool:
        """Whether no controller has answered for ``silence_max_ms``."""
        return self.cut_off_since_ms is not None

    @property
    def refusal(self) -> str | None:
        """The reason why no controller lets this process read, told by one when all had been asked; None: one may."""
        return self._forbidden if self._rotation.failures >= len(self._feeds) else None

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Return once a condition on the loader holds. Looked at after every answer, and whenever its state changes."""
        while not is_true():
            await self._changed.wait()

    # --- the task ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the log until cancelled.

        Raises:
            LoaderFault: a committed batch or checkpoint cannot be replayed.
        """
        self._look_at_silence()
        try:
            await self._follow()
        except LoaderFault as fault:
            self.fault = fault
            raise
        finally:
            self._silence.cancel()
            self._wake()

    def _look_at_silence(self) -> None:
        """Tell that no controller is known when none was heard of for too long: the brokers may have been fenced."""
        left_ms = self._heard_ms + self._timing.silence_max_ms - self._now_ms()
        if left_ms <= 0 and not self.is_cut_off:
            self.cut_off_since_ms = self._wall_ms() - (self._now_ms() - self._heard_ms)
            log.warning("loader.cut_off", reason=self.trouble, silent_ms=round(self._now_ms() - self._heard_ms))
            self._announce()
            self._wake()
        wait_ms = left_ms if left_ms > 0 else self._timing.silence_max_ms
        self._silence = asyncio.get_running_loop().call_later(wait_ms / 1000, self._look_at_silence)

    async def _follow(self) -> None:
        while True:
            try:
                await self._step(self._feeds[self._rotation.index])
            except UntrustworthyAnswer as error:
                self.counters.refused_answers += 1
                await self._switch("loader.answer_refused", error)
            except FeedUnavailable as error:
                self._forbidden = str(error) if isinstance(error, FeedForbidden) else self._forbidden
                await self._switch("loader.controller_unavailable", error)
            else:
                self._rotation.succeeded()
                self.trouble = self._forbidden = None

    async def _step(self, feed: FollowedFeed) -> None:
        try:
            answer = await feed.fetch_batches(self._position, self._timing.wait_ms, self._timing.bytes_max)
        except PositionRefused as refusal:
            await self._reload(feed, refusal)
            return
        self._accept(answer.status)
        await self._replay(answer)
        self._note_progress(answer.status)
        if answer.status.leader_id is None:
            # It serves, but may be cut off from the others and never hear of anything new.
            raise FeedUnavailable(f"{feed.name} knows of no active controller")

    async def _switch(self, event: str, error: QuorateError) -> None:
        failed = self.feed_name
        self.counters.failed_calls += 1
        self.trouble = str(error)
        wait_ms = self._rotation.failed()
        self.counters.switches += self.feed_name != failed
        self._wake()
        if self._rotation.failures <= len(self._feeds):  # a lasting outage is said once
            log.warning(event, controller=failed, reason=str(error), next_controller=self.feed_name)
        if wait_ms:
            await self._sleep_ms(wait_ms)

    def _accept(self, status: ControllerStatus) -> None:
        """Raises UntrustworthyAnswer if this controller is of another cluster or behind an epoch that was seen."""
        known = self.status
        if known is not None and status.cluster_id != known.cluster_id:
            raise UntrustworthyAnswer(f"{self.feed_name} is of cluster {status.cluster_id}, not of {known.cluster_id}")
        if known is not None and status.epoch < known.epoch:
            raise UntrustworthyAnswer(
                f"{self.feed_name} is at epoch {status.epoch}; epoch {known.epoch} was seen before"
            )
        self.status = status
        self._heard_ms = self._now_ms()
        if self.is_cut_off:
            log.info("loader.back", controller=self.feed_name)
            self.cut_off_since_ms = None
        self._announce()

    async def _replay(self, answer: BatchesAnswer) -> None:
        view = memoryview(answer.data)
        for batches in _published_together(check_batches(answer.data, self._position, answer.status)):
            begun_ms = self._now_ms()
            for start, header in batches:
                try:
                    self._state = self._state.replay_batch(view[start : start + header.size])
                except (ReplayError, MalformedData) as error:
                    said = f"the batch at offset {header.base_offset} cannot be replayed: {error}"
                    raise LoaderFault(said) from error
                self._position = FeedPosition(header.end_offset, header.epoch)
                self.history.add(self._state.stable)
                await asyncio.sleep(0)  # heartbeats and readers get their share between two batches
            elapsed_ms, byte_count = self._now_ms() - begun_ms, sum(header.size for _, header in batches)
            self.counters.batches += len(batches)
            self.counters.bytes += byte_count
            self.counters.replay_ms += elapsed_ms
            self._publish(len(batches), byte_count, elapsed_ms, is_checkpoint=False)
            await asyncio.sleep(0)  # what publishers do of a mass change takes as long as to replay it

    async def _reload(self, feed: FollowedFeed, refusal: PositionRefused) -> None:
        """Take the checkpoint of a controller whose log does not continue from here.

        A refusal does not say at which epoch it was made; the pieces of the checkpoint do, so a controller that is
        behind cannot make anybody throw an image away.
        """
        fetched = await fetch_checkpoint(
            feed, self._timing.bytes_max, self._accept, lambda: self._sleep_ms(self._timing.retry_first_ms)
        )
        if not refusal.is_diverging and fetched.id.end_offset <= self._position.offset:
            raise UntrustworthyAnswer(
                f"{feed.name}: its log begins after offset {self._position.offset}, "
                f"but its newest checkpoint covers only {fetched.id.end_offset}"
            )
        begun_ms = self._now_ms()
        # In a thread: a large checkpoint takes a second, and brokers must heartbeat.
        self._state = await asyncio.to_thread(_load, feed.name, fetched)
        self._position = FeedPosition(*fetched.id)
        self.history.clear()
        self.history.add(self._state.stable)
        self.counters.checkpoint_loads += 1
        elapsed_ms = self._now_ms() - begun_ms
        log.info(
            "loader.checkpoint_loaded",
            controller=feed.name,
            reason=str(refusal),
            end_offset=fetched.id.end_offset,
            epoch=fetched.id.epoch,
            bytes=len(fetched.data),
            took_ms=round(elapsed_ms),
        )
        self._publish(0, len(fetched.data), elapsed_ms, is_checkpoint=True)
        self._note_progress(fetched.status)

    def _note_progress(self, status: ControllerStatus) -> None:
        """Catch-up ends once: at the first answer whose high watermark has been reached."""
        if not self.is_caught_up and self._position.offset > 0 and self._position.offset >= status.high_watermark:
            self.is_caught_up = True
            log.info("loader.caught_up", offset=self._position.offset, controller=self.feed_name)
            self._publish(0, 0, 0.0, is_checkpoint=True)
        self._wake()

    def _wake(self) -> None:
        """Let everybody look who waits for something of the loader."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _publish(self, batch_count: int, byte_count: int, elapsed_ms: float, *, is_checkpoint: bool) -> None:
        """Nothing is published before the loader has caught up, or from inside a transaction."""
        image = self._state.stable
        if not self.is_caught_up or image is self.publishers.image:
            return
        manifest = Manifest(image.provenance, batch_count, byte_count, elapsed_ms, is_checkpoint, self.controller)
        self.publishers.publish(image, manifest)
        self._announce()

    def _announce(self) -> None:
        """Nobody is told who leads before there is an image to go with it."""
        if self.publishers.is_published:
            self.publishers.announce_controller(self.controller)


def _published_together(batches: Iterable[CheckedBatch]) -> Iterator[list[CheckedBatch]]:
    """The batches of an answer in parts: what an image of each comes to, publishers take in one turn of the loop."""
    part: list[CheckedBatch] = []
    records = 0
    for batch in batches:
        part.append(batch)
        records += batch.header.record_count
        if records >= RECORDS_PUBLISHED_TOGETHER:
            yield part
            part, records = [], 0
    if part:
        yield part


def _load(name: str, fetched: FetchedCheckpoint) -> ReplayState:
    end_offset = fetched.id.end_offset
    try:
        with collector_resting():
            contents = checkpoint_contents(fetched)
            return ReplayState(read_checkpoint(contents, end_offset, fetched.id.epoch, EMPTY_UNCOUNTED_IMAGE))
    except UnsupportedRecord as error:
        raise LoaderFault(f"the checkpoint at offset {end_offset} cannot be read: {error}") from error
    except MalformedData as error:
        raise UntrustworthyAnswer(f"{name}: the checkpoint at offset {end_offset}: {error}") from error
    except ReplayError as error:
        raise LoaderFault(f"the checkpoint at offset {end_offset} cannot be replayed: {error}") from error
