"""The plug-in point: what is told of every change of the cluster's metadata.

Rules for the caller (``PublisherSet``): everything happens on the event loop's thread; updates come in the order of the
log, never from inside an open transaction, and only once the loader has caught up. The first update of a
publisher is the whole image as a delta from nothing. A publisher that raises is isolated: the others go on, and its
next delta starts at the last image that it took, so it misses nothing. Updates that change nothing but the offset
(an idle controller writes a NoOp record twice a second) reach only those that ask for them; Kafka's reach all.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Protocol

from quorate.broker.library_log import LibraryLog
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.tracebacks import traceback_text
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance

log = LibraryLog(__name__)


class DuplicatePublisher(QuorateError):
    """Two publishers of one name: their errors could not be told apart."""


@dataclass(frozen=True, slots=True)
class ControllerEpoch:
    """The leader of the quorum and its epoch, as the feed last said."""

    #: Node id of the active controller; None while nobody leads, or nobody is known to.
    leader_id: int | None
    epoch: int


#: Before any controller was heard.
UNKNOWN_CONTROLLER: Final = ControllerEpoch(None, 0)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The origin of an update."""

    #: What the new image covers.
    provenance: Provenance
    #: Batches replayed for it; 0 for a checkpoint, and for the first update of a publisher.
    batch_count: int
    #: Bytes of those batches, or of the checkpoint file.
    byte_count: int
    #: Milliseconds that checking and replaying took.
    elapsed_ms: float
    #: The image was loaded whole: anything may differ from the one before it, and it may even be older.
    is_checkpoint: bool
    #: Who led the quorum when this was read, as the controller said that it was read from.
    controller: ControllerEpoch = UNKNOWN_CONTROLLER
    #: The publisher raised when it was told the last time: it may have a part of that, and nobody knows which.
    follows_failure: bool = False

    @property
    def offset(self) -> int:
        """Last offset that the new image contains; -1 = none."""
        return self.provenance.last_contained_offset

    @property
    def epoch(self) -> int:
        """Leader epoch of the batch that it ends with; that of ``controller`` may be higher."""
        return self.provenance.epoch

    @property
    def time_ms(self) -> int:
        """Milliseconds since 1970, of that batch."""
        return self.provenance.log_time_ms


class PublisherFaults(Protocol):
    """Is told of publishers that raise. They are isolated all the same."""

    def publisher_failed(self, publisher: str, method: str, error: BaseException) -> None:
        """A publisher raised in a method; of updates that go on to fail only the first is told."""


class LoggedFaults:
    """``PublisherFaults`` that go to the process's log, with their traceback."""

    def publisher_failed(self, publisher: str, method: str, error: BaseException) -> None:
        """See ``PublisherFaults``."""
        log.error("publisher.failed", publisher=publisher, method=method, exception=traceback_text(error))


class MetadataPublisher(ABC):
    """Something that follows the cluster's metadata. Subclass it, and give it to a broker or to a watcher.

    Methods are called on the event loop's thread and must return soon: start a task for anything that waits.
    Images are immutable and may be kept, and read from any thread.
    """

    #: Whether updates that change nothing but the offset are to come, too: a few each second.
    wants_every_offset: bool = False

    @property
    def name(self) -> str:
        """Unique within a process; for logs and metrics. Several publishers of one class each need one of their own."""
        return type(self).__name__

    @abstractmethod
    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        """The metadata changed. ``delta`` says what differs in ``image`` from the image this publisher took last.

        An exception is logged and counted; this update is then part of the next one, whose manifest says so. Whoever
        may have taken a half of it forgets all then, and takes ``MetadataDelta(EMPTY_IMAGE, image)`` instead.
        """

    def on_controller_change(self, controller: ControllerEpoch) -> None:  # noqa: B027 - most do not care
        """Another controller is active, or none is known any more: nobody leads, or no controller answers."""

    def close(self) -> None:  # noqa: B027 - most own nothing
        """No call comes after this one."""


@dataclass(slots=True)
class PublisherState:
    """The state of one publisher."""

    publisher: MetadataPublisher
    #: The last image that it took without raising.
    taken: MetadataImage = EMPTY_IMAGE
    has_taken_any: bool = False
    #: Calls that raised, ever.
    error_count: int = 0
    #: Updates that raised since the last one that did not.
    missed_count: int = 0


class PublisherSet:
    """The publishers of one process, each kept from the others' failures. Called in order of installation."""

    def __init__(self, publishers: Iterable[MetadataPublisher] = (), faults: PublisherFaults | None = None) -> None:
        """``faults``: None: they are logged."""
        self._faults = faults or LoggedFaults()
        self._states: dict[str, PublisherState] = {}
        self._image = EMPTY_IMAGE
        self._is_published = False
        self._controller: ControllerEpoch | None = None
        for publisher in publishers:
            self.install(publisher)

    @property
    def image(self) -> MetadataImage:
        """The image that was published last; the empty one before the first."""
        return self._image

    @property
    def is_published(self) -> bool:
        """Whether there has been a first update."""
        return self._is_published

    def states(self) -> list[PublisherState]:
        """The state of each publisher, in order of installation."""
        return list(self._states.values())

    def install(self, publisher: MetadataPublisher) -> None:
        """Add a publisher. If there is a published image, its first update comes at once.

        Raises:
            DuplicatePublisher: one of that name is installed.
        """
        if publisher.name in self._states:
            raise DuplicatePublisher(
                f"a publisher named {publisher.name!r} is installed already: each needs a name of its own"
            )
        state = self._states[publisher.name] = PublisherState(publisher)
        if self._is_published:
            manifest = Manifest(self._image.provenance, 0, 0, 0.0, True, self._controller or UNKNOWN_CONTROLLER)
            self._update(state, MetadataDelta(EMPTY_IMAGE, self._image), manifest)
            if self._controller is not None and self._states.get(publisher.name) is state:
                self._call(state, "on_controller_change", publisher.on_controller_change, self._controller)

    def remove(self, name: str) -> None:
        """Close a publisher and forget it; nothing happens if there is none of that name."""
        state = self._states.pop(name, None)
        if state is not None:
            self._call(state, "close", state.publisher.close)

    def publish(self, image: MetadataImage, manifest: Manifest) -> None:
        """Hand an image to every publisher that it is news to."""
        self._image, self._is_published = image, True
        # Publishers that took the same image share a delta: what one of them has asked of it is worked out.
        deltas: dict[int, MetadataDelta] = {}
        for state in self._installed():
            delta = deltas.setdefault(id(state.taken), MetadataDelta(state.taken, image))
            if not state.has_taken_any:
                first = replace(manifest, batch_count=0, byte_count=0, elapsed_ms=0.0, is_checkpoint=True)
                self._update(state, delta, first)
            elif state.publisher.wants_every_offset or manifest.is_checkpoint or state.missed_count or delta:
                # One that raised may have taken half of it: it is told also where nothing is left of the change.
                self._update(state, delta, manifest)

    def announce_controller(self, controller: ControllerEpoch) -> None:
        """Tell every publisher who leads, if that is news."""
        if controller == self._controller:
            return
        self._controller = controller
        for state in self._installed():
            self._call(state, "on_controller_change", state.publisher.on_controller_change, controller)

    def call(self, name: str, function: Callable[..., None], *arguments: object) -> None:
        """Call another method of a publisher, isolated as all are; nothing happens if there is none of that name."""
        state = self._states.get(name)
        if state is not None:
            self._call(state, function.__name__, function, *arguments)

    def close(self) -> None:
        """Close all, last installed first."""
        for name in reversed(list(self._states)):
            self.remove(name)

    def _installed(self) -> Iterator[PublisherState]:
        """In order of installation; without those that are removed meanwhile, for they are closed."""
        for name, state in list(self._states.items()):
            if self._states.get(name) is state:
                yield state

    def _update(self, state: PublisherState, delta: MetadataDelta, manifest: Manifest) -> None:
        publisher, image = state.publisher, delta.new
        is_known_to_fail = state.missed_count > 0  # one that fails at every update would fill the log
        update = publisher.on_metadata_update
        manifest = replace(manifest, follows_failure=True) if state.missed_count else manifest
        if not self._call(state, "on_metadata_update", update, delta, image, manifest, is_quiet=is_known_to_fail):
            state.missed_count += 1
            return
        if state.missed_count:
            log.info("publisher.recovered", publisher=publisher.name, missed_updates=state.missed_count)
        state.taken, state.has_taken_any, state.missed_count = image, True, 0

    def _call(
        self,
        state: PublisherState,
        method: str,
        function: Callable[..., None],
        *arguments: object,
        is_quiet: bool = False,
    ) -> bool:
        try:
            function(*arguments)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the isolation that publishers are promised
            # Nothing is awaited here: a cancellation is that of a task of the publisher's own, whose result it wanted.
            state.error_count += 1
            if not is_quiet:
                self._faults.publisher_failed(state.publisher.name, method, error)
            return False
        return True
