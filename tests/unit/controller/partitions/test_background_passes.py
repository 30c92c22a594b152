"""What passes in the background look at: pages, whatever the size of the table, and those that changed."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.partitions import elections, preferred_counts
from quorate.controller.partitions.elections import decide_balance_leaders, decide_elect_unclean_leaders
from quorate.controller.partitions.preferred_counts import COUNTED_PAGES_PER_PASS_MAX, PreferredCounts
from quorate.metadata_log.records.records import BrokerRegistrationChangeRecord, PartitionChangeRecord, VersionedRecord
from quorate.scripts.benchmarks.large_cluster import large_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.page_access import is_not_led_by_preferred
from quorate.snapshots.table.pages import PAGE_ROWS, Page, PagePredicate
from quorate.snapshots.table.slot_layout import PREFERRED_SLOT
from tests.default_parts import controller_config
from tests.unit.broker import images

PAGES = 2 * COUNTED_PAGES_PER_PASS_MAX + 5
CONFIG = controller_config(node_id=9, cluster_id="c")
SHARED = controller_config(node_id=9, cluster_id="c", leader_imbalance_percentage=10)


@pytest.fixture(scope="module")
def image() -> MetadataImage:
    return large_image(PAGES * PAGE_ROWS)


def counting(looked_at: list[int], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Note, in ``looked_at``, each page that a predicate of the passes is asked about."""
    usual: PagePredicate = getattr(elections, name)

    def counted(page: Page) -> NDArray[np.bool_]:
        looked_at.append(id(page))
        return usual(page)

    monkeypatch.setattr(elections, name, counted)


def led_by_second(image: MetadataImage, row: int) -> MetadataImage:
    """The image after one partition was given to its second replica."""
    table = image.partitions
    second = table.partition(row).replicas[1]
    change = PartitionChangeRecord(partition_id=table.partition_id(row), topic_id=table.topic_id(row), leader=second)
    return replay(image, [VersionedRecord(change, 0)])


@pytest.mark.parametrize(
    ("decide", "predicate"),
    [(decide_balance_leaders, "is_not_led_by_preferred"), (decide_elect_unclean_leaders, "is_leaderless")],
)
def test_a_pass_that_finds_nothing_looks_at_some_pages_and_the_next_goes_on_behind_them(
    decide: Callable[..., Decision[int | None]],
    predicate: str,
    image: MetadataImage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elections, "_PAGES_PER_PASS_MAX", 20)
    looked_at: list[int] = []
    counting(looked_at, predicate, monkeypatch)
    passes: list[int] = []
    next_row: int | None = 0
    while next_row is not None:
        before = len(looked_at)
        decision = decide(image, CONFIG, next_row)
        next_row = decision.reply
        passes.append(len(looked_at) - before)

    assert passes == [20, 20, 20, PAGES - 60]
    assert looked_at == [id(page) for page in image.partitions.pages]


def test_balance_of_imbalanced_brokers_counts_some_pages_at_a_time_and_then_those_that_changed(
    image: MetadataImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    usual = preferred_counts._count

    def count(page: Page) -> object:
        counted.append(id(page))
        return usual(page)

    monkeypatch.setattr(preferred_counts, "_count", count)
    counts = PreferredCounts()

    replies = [decide_balance_leaders(image, SHARED, 0, counts).reply for _ in range(2)]
    assert (replies, len(counted)) == ([0, 0], 2 * COUNTED_PAGES_PER_PASS_MAX)
    decide_balance_leaders(image, SHARED, 0, counts)
    assert len(counted) == PAGES

    decide_balance_leaders(led_by_second(image, 3 * PAGE_ROWS), SHARED, 0, counts)
    assert len(counted) == PAGES + 1


def test_counts_that_were_kept_say_what_new_ones_say(image: MetadataImage) -> None:
    kept, smaller = PreferredCounts(), large_image(3 * PAGE_ROWS)
    changed = smaller
    for row in range(0, PAGE_ROWS, 12):
        changed = led_by_second(changed, row)
    for each in (smaller, image, changed, smaller, changed):
        kept.refresh(each.partitions, None)

    new = PreferredCounts()
    new.refresh(changed.partitions, None)
    percentages = range(0, 101, 5)
    said = [sorted(kept.missing_more_than(percentage).tolist()) for percentage in percentages]
    assert said == [sorted(new.missing_more_than(percentage).tolist()) for percentage in percentages]
    assert said[0]


def random_image(draw: random.Random) -> MetadataImage:
    """Five brokers, some fenced or shutting down, and partitions in any state, also such as no decision leaves."""
    partitions = []
    for number in range(60):
        replicas = draw.sample(range(1, 7), draw.randrange(1, 5))
        isr = draw.sample(replicas, draw.randrange(len(replicas) + 1))
        leader = draw.choice([*isr, -1])
        partitions.append(images.partition(0, number, replicas, isr=isr, leader=leader))
    image = images.cluster_image(range(1, 6), partitions)
    away = [images.fencing(broker, fenced=True) for broker in range(1, 6) if draw.random() < 0.3]
    leaving = [
        BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=1, in_controlled_shutdown=1)
        for broker in range(1, 6)
        if draw.random() < 0.2
    ]
    return images.replayed(image, *away, *leaving)


@pytest.mark.parametrize("config", [CONFIG, SHARED])
@pytest.mark.parametrize("seed", range(40))
def test_balance_passes_over_nothing_in_which_somebody_would_be_elected(
    seed: int, config: ControllerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = random_image(random.Random(seed))
    changed = decide_balance_leaders(image, config).records
    monkeypatch.setattr(elections, "_may_be_balanced", lambda imbalanced, _, page: _all_missed(imbalanced, page))
    assert [*map(repr, changed)] == [*map(repr, decide_balance_leaders(image, config).records)]


def _all_missed(imbalanced: NDArray[np.int32] | None, page: Page) -> NDArray[np.bool_]:
    missed = is_not_led_by_preferred(page)
    return missed if imbalanced is None else missed & np.isin(page.slots[PREFERRED_SLOT], imbalanced)
