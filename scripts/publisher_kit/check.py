"""Tests a publisher as hard as a cluster may: every history in every way in which it may be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from quorate.broker.publisher import MetadataPublisher
from quorate.metadata_log.arguments import checked_call
from quorate.scripts.captures import DYNAMIC_SMALL_M1
from quorate.scripts.publisher_kit.deliveries import HistoryDelivery, TestedPublisher
from quorate.scripts.publisher_kit.histories import HistoryPoint, points_in, points_of
from quorate.scripts.publisher_kit.made_histories import HISTORY_BROKERS, made_history
from quorate.snapshots.image.image import MetadataImage

P = TypeVar("P", bound=MetadataPublisher)

#: Of a made history each; together they take a few seconds.
_SEEDS: Final = range(10)
#: Batches that one update may join, now and then.
_JOINED_MAX: Final = 6


@checked_call
def check_publisher(
    make: Callable[[], P],
    seen: Callable[[P], object],
    expected: Callable[[MetadataImage], object],
    *,
    seeds: Iterable[int] = _SEEDS,
    directories: Sequence[Path | str] = (),
    is_atomic: bool = False,
) -> None:
    """Tell a publisher histories in every way in which it may be told, and compare what it has after every step.

    Each seed makes a history of its own, with brokers 1 to 4 (``HISTORY_BROKERS``). It is told to a new publisher
    from each of its points on, and once more in a way that the seed chooses: batches joined, images loaded whole
    in place of deltas, older ones among them, updates that fail before or after the publisher has them, changes of the
    controller, new processes. A log of Apache Kafka and ``directories`` are told as well, each in as many ways.

    A loop runs meanwhile, as it does where publishers are called: the caller's, or one of the check's own. Tasks that
    publishers start run between two histories; in the caller's loop, after the check.

    Args:
        make: a new publisher.
        seen: what a publisher has, as a value that can be compared: a set, a dictionary.
        expected: what it should have, from the state alone.
        seeds: which histories, and which ways to tell them; the same seed is always the same.
        directories: metadata directories of one's own, ours or Kafka's.
        is_atomic: an update that raises has changed nothing in this publisher, so that none fails after it is taken.

    Raises:
        PublisherDiffers: a publisher has something else, or raised; an ``AssertionError``. Seed and step are named.
        StorageError, ReplayError, ImageNotAvailable: one of ``directories`` cannot be read.
    """
    subject, logs = TestedPublisher(make, seen, expected), [Path(one) for one in directories]
    histories = _told_histories(subject, seeds, logs, is_atomic=is_atomic)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_turn_by_turn(histories))
    else:
        for _ in histories:
            pass


async def _turn_by_turn(histories: Iterator[None]) -> None:
    """Tasks that publishers start run between two histories, and Ctrl-C is heard there."""
    for _ in histories:
        await asyncio.sleep(0)


def _told_histories(
    subject: TestedPublisher[P], seeds: Iterable[int], directories: Sequence[Path], *, is_atomic: bool
) -> Iterator[None]:
    """Tell one more history at each step."""
    recorded = {"Apache Kafka's log": points_in(DYNAMIC_SMALL_M1)}
    recorded |= {str(directory): points_in(directory) for directory in directories}
    for seed in seeds:
        made = points_of(made_history(seed))
        _cut_at_every_point(subject, made, f"seed {seed}", is_atomic=is_atomic)
        yield
        _wander(subject, made, Random(seed), f"seed {seed}", is_atomic=is_atomic)
        yield
        for name, points in recorded.items():
            _wander(subject, points, Random(seed), f"seed {seed} of {name}", is_atomic=is_atomic)
            yield
    for name, points in recorded.items():
        _cut_at_every_point(subject, points, name, is_atomic=is_atomic)
        yield


def _cut_at_every_point(
    subject: TestedPublisher[P], points: Sequence[HistoryPoint], name: str, *, is_atomic: bool
) -> None:
    """Begin at each point; go on by one batch, and to the end at once; by a whole image; after a failure."""
    last = len(points) - 1
    for at in range(last):
        delivery = HistoryDelivery(subject, points, f"{name}, begun at offset {points[at].offset}", at)
        delivery.change_controller(None, 1)
        delivery.go_on(at + 1)
        if at + 1 < last:
            delivery.go_on(last)
        delivery.begin_anew(at)
        delivery.load(at + 1)
        if at + 1 < last:
            delivery.fail_next(is_taken=not is_atomic)
            delivery.go_on(at + 2)
            delivery.load(at)
        delivery.close()


def _wander(
    subject: TestedPublisher[P], points: Sequence[HistoryPoint], rng: Random, name: str, *, is_atomic: bool
) -> None:
    """From the first point to the last, with everything that may come between."""
    delivery = HistoryDelivery(subject, points, name, 0)
    last, epoch = len(points) - 1, 1
    while delivery.at < last:
        chance = rng.random()
        ahead = min(last, delivery.at + (1 if rng.random() < 0.6 else rng.randint(2, _JOINED_MAX)))
        if chance < 0.6:
            delivery.go_on(ahead)
        elif chance < 0.7:
            delivery.load(ahead)
        elif chance < 0.75:
            delivery.load(max(0, delivery.at - rng.randint(0, _JOINED_MAX)))
        elif chance < 0.87:
            delivery.fail_next(is_taken=not is_atomic and rng.random() < 0.5)
            delivery.go_on(ahead)
        elif chance < 0.95:
            epoch += rng.randint(0, 1)
            delivery.change_controller(rng.choice((None, *HISTORY_BROKERS[:3])), epoch)
        else:
            delivery.begin_anew(ahead)
    delivery.load(last)  # also where the last update has failed: now it is told what it has missed
    delivery.close()
