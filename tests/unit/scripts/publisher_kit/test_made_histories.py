"""Made histories: a cluster could have had them, a seed makes one only, and all kinds of changes are in them."""

from __future__ import annotations

from itertools import pairwise

from quorate.metadata_log.batches.batch import checked_header
from quorate.scripts.publisher_kit.histories import HistoryPoint, points_of
from quorate.scripts.publisher_kit.made_histories import HISTORY_BROKERS, made_history
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.invariants import broken_rules
from quorate.snapshots.image_digest import digest_image

SEEDS = range(10)


def points(seed: int) -> list[HistoryPoint]:
    return points_of(made_history(seed))


def test_history_obeys_the_rules_of_every_state() -> None:
    for seed in SEEDS:
        for point in points(seed):
            assert list(broken_rules(point.image)) == [], (seed, point.offset)


def test_labels_are_of_things_that_there_are() -> None:
    for seed in SEEDS:
        for point in points(seed):
            image = point.image
            topics = [(name, topic.id) for name, topic in image.topics.by_name.items()]
            things = {"cluster", "record:routing"}
            things |= {f"broker:{broker}" for broker in image.cluster.brokers}
            things |= {f"topic:{name}" for name, _ in topics}
            things |= {f"partition:{name}-{n}" for name, one in topics for n, _ in image.partitions.partitions_of(one)}
            assert set(image.labels.resources) <= things, (seed, point.offset)


def test_history_is_a_log_without_gaps() -> None:
    end = 0
    for batch in made_history(1):
        header = checked_header(batch)
        assert (header.base_offset, header.size) == (end, len(batch))
        end = header.end_offset


def test_same_seed_makes_the_same_bytes_and_another_makes_others() -> None:
    assert list(made_history(1)) == list(made_history(1))
    assert list(made_history(1)) != list(made_history(2))


def test_histories_have_every_kind_of_change_that_a_publisher_may_miss() -> None:
    seen: set[str] = set()
    for seed in SEEDS:
        made = points(seed)
        for before, after in pairwise(made):
            seen |= changes(MetadataDelta(before.image, after.image))
    assert seen == {
        "nothing", "broker new", "broker changed", "broker gone", "topic new", "topic gone", "topic under its old name",
        "partition new", "partition changed", "partition gone", "leader gone", "configs changed", "configs gone",
        "replica moved away",
        "label new", "label changed", "label gone", "last label gone", "label gone with its topic",
    }  # fmt: skip


def changes(delta: MetadataDelta) -> set[str]:
    old, new = delta.old, delta.new
    brokers = delta.brokers
    names = {old.topics.by_id[topic].name for topic in delta.topics.removed}
    led = {row for row in delta.partitions.rows.tolist() if new.partitions.partition(row).has_leader}
    labels = [(old.labels.of(one), new.labels.of(one)) for one in delta.labels.updated | delta.labels.removed]
    found = {
        "nothing": not delta,
        "broker new": any(broker not in old.cluster.brokers for broker in brokers.updated),
        "broker changed": any(broker in old.cluster.brokers for broker in brokers.updated),
        "broker gone": brokers.removed,
        "topic new": delta.topics.updated,
        "topic gone": delta.topics.removed,
        "topic under its old name": names & new.topics.by_name.keys(),
        "partition new": (delta.partitions.old_rows < 0).any(),
        "partition changed": (delta.partitions.old_rows >= 0).any(),
        "partition gone": len(delta.partitions.removed_rows),
        "leader gone": len(led) < len(delta.partitions.rows),
        "configs changed": delta.configs.updated,
        "configs gone": delta.configs.removed,
        "label new": any(after.keys() - before.keys() for before, after in labels),
        "label changed": any(before[key] != after[key] for before, after in labels for key in before.keys() & after),
        "label gone": any(before.keys() - after.keys() for before, after in labels),
        "last label gone": delta.labels.removed,
        "label gone with its topic": {f"topic:{name}" for name in names} & delta.labels.removed,
        "replica moved away": any(delta.local_changes(broker).stopped() for broker in HISTORY_BROKERS),
    }
    return {name for name, is_so in found.items() if is_so}


def test_reloaded_state_is_the_same_state_and_shares_nothing() -> None:
    made = points(1)[-1]
    assert digest_image(made.reloaded) == digest_image(made.image)
    assert made.reloaded.provenance == made.image.provenance
    assert not MetadataDelta(made.image, made.reloaded)
    assert made.reloaded.partitions.pages[0] is not made.image.partitions.pages[0]
