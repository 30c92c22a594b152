"""One publisher that is told one history, and compared with it after every step.

It is told by the brokers' own ``PublisherSet``. Which points of the history it is told of, and how, is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Generic, NamedTuple, NoReturn, TypeVar

from quorate.broker.publisher import (
    UNKNOWN_CONTROLLER,
    ControllerEpoch,
    Manifest,
    MetadataPublisher,
    PublisherSet,
)
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.publisher_kit.histories import HistoryPoint
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage

P = TypeVar("P", bound=MetadataPublisher)

#: Characters of a value that a message shows.
_SHOWN_MAX: Final = 400
#: Steps before the one that was wrong that a message tells.
_STEPS_TOLD: Final = 6


class PublisherDiffers(QuorateError, AssertionError):
    """A publisher has not what the history says, or raised. The message names seed and step, and the way there."""


class TestedPublisher(NamedTuple, Generic[P]):
    """The publisher that is tested: a way to make it, its state, and the state that it should have."""

    make: Callable[[], P]
    seen: Callable[[P], object]
    expected: Callable[[MetadataImage], object]


class HistoryDelivery(Generic[P]):
    """Methods are steps; each compares, and raises ``PublisherDiffers``."""

    def __init__(self, subject: TestedPublisher[P], points: Sequence[HistoryPoint], name: str, at: int) -> None:
        """``name``: how to have the same again, for messages. ``at``: the first point that is told."""
        self._subject = subject
        self._points = points
        self._name = name
        self._steps: list[str] = []
        self._controller = UNKNOWN_CONTROLLER
        self.at = at
        self._begin(at)

    def _begin(self, at: int) -> None:
        self._step(f"a new process, at offset {self._points[at].offset}")
        self._told = _BreakablePublisher(self._subject.make())
        self._publishers = PublisherSet([self._told], self)
        self._publish(at, self._points[at].image, 0, 0, is_checkpoint=True)

    def publisher_failed(self, publisher: str, method: str, error: BaseException) -> None:
        """``PublisherFaults``: what was not asked for is kept elsewhere, and nothing has to be logged."""

    def go_on(self, to: int) -> None:
        """A delta over all batches up to a later point."""
        count = to - self.at
        self._step(f"offset {self._points[to].offset}, by a delta over {count} batch{'es' if count > 1 else ''}")
        byte_count = sum(point.byte_count for point in self._points[self.at + 1 : to + 1])
        self._publish(to, self._points[to].image, count, byte_count, is_checkpoint=False)

    def load(self, to: int) -> None:
        """The whole image of any point, an earlier one as well."""
        way = "whole" if to > self.at else "whole again" if to == self.at else "whole, although it is older"
        self._step(f"offset {self._points[to].offset}, {way}")
        point = self._points[to]
        self._publish(to, point.reloaded, 0, point.byte_count, is_checkpoint=True)

    def fail_next(self, *, is_taken: bool) -> None:
        """Let the next update raise: before the publisher has seen it, or after it has taken it."""
        self._step(f"the next update fails {'after' if is_taken else 'before'} the publisher has it")
        self._told.failure = "after" if is_taken else "before"

    def change_controller(self, leader_id: int | None, epoch: int) -> None:
        """Another controller leads, or nobody."""
        self._step(f"controller {leader_id} leads in epoch {epoch}")
        self._controller = ControllerEpoch(leader_id, epoch)
        self._publishers.announce_controller(self._controller)
        self._compare()

    def begin_anew(self, at: int) -> None:
        """The process ends, and another one begins with a new publisher, which is told of a point first."""
        self.close()
        self._begin(at)

    def close(self) -> None:
        """The process ends."""
        self._step("the process ends")
        self._publishers.close()
        self._check_error()

    def _publish(self, to: int, image: MetadataImage, count: int, byte_count: int, *, is_checkpoint: bool) -> None:
        self.at = to
        self._publishers.publish(
            image, Manifest(image.provenance, count, byte_count, 0.1, is_checkpoint, self._controller)
        )
        self._compare()

    def _compare(self) -> None:
        """A publisher of which an update has failed need not have anything right before the next one."""
        self._check_error()
        if self._publishers.states()[0].missed_count:
            return
        expected = self._subject.expected(self._publishers.image)
        try:
            seen = self._subject.seen(self._told.inner)
        except Exception as error:  # noqa: BLE001 - the program under test
            self._fail(f"what it has cannot be told: {type(error).__name__}: {error}", error)
        if seen != expected:
            self._fail(_difference(seen, expected))

    def _check_error(self) -> None:
        error = self._told.error
        if error is not None:
            self._fail(f"it raised {type(error).__name__}: {error}", error)

    def _step(self, what: str) -> None:
        self._steps.append(what)

    def _fail(self, what: str, error: Exception | None = None) -> NoReturn:
        number = len(self._steps) - 1
        first = max(0, number + 1 - _STEPS_TOLD)
        told = "\n".join(f"  step {step}: {self._steps[step]}" for step in range(first, number + 1))
        raise PublisherDiffers(f"{self._name}, step {number}: {what}\n{told}") from error


class _Pretended(Exception):
    """A failure that was asked for."""


class _BreakablePublisher(MetadataPublisher, Generic[P]):
    """The publisher under test, which can be made to fail."""

    def __init__(self, inner: P) -> None:
        self.inner = inner
        self.wants_every_offset = inner.wants_every_offset
        #: When the next update is to fail: "before" or "after" the publisher has it; "" = it is not.
        self.failure = ""
        #: What it raised by itself.
        self.error: Exception | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        failure, self.failure = self.failure, ""
        if failure != "before":
            self._call(self.inner.on_metadata_update, delta, image, manifest)
        if failure:
            raise _Pretended

    def on_controller_change(self, controller: ControllerEpoch) -> None:
        self._call(self.inner.on_controller_change, controller)

    def close(self) -> None:
        self._call(self.inner.close)

    def _call(self, method: Callable[..., None], *arguments: object) -> None:
        try:
            method(*arguments)
        except Exception as error:
            self.error = error
            raise


def _difference(seen: object, expected: object) -> str:
    """The difference in a few words: of sets and dictionaries only what differs."""
    if isinstance(seen, set | frozenset) and isinstance(expected, set | frozenset):
        sides = (("has too much", seen - expected), ("lacks", expected - seen))
        return "it " + ", and ".join(f"{what}: {_shown(wrong)}" for what, wrong in sides if wrong)
    if isinstance(seen, dict) and isinstance(expected, dict):
        same = {key for key in seen.keys() & expected.keys() if seen[key] == expected[key]}
        seen = {key: value for key, value in seen.items() if key not in same}
        expected = {key: value for key, value in expected.items() if key not in same}
    return f"it has {_shown(seen)}, and the image says {_shown(expected)}"


def _shown(value: object) -> str:
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
