"""A checkpoint is the image again, at every level of metadata.version."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.records.records import TopicRecord
from quorate.scripts.benchmarks.large_cluster import large_image
from quorate.snapshots.checkpoints import checkpoint
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import METADATA_VERSION, FeaturesImage
from quorate.snapshots.replay.replay import replay

MOMENTS = ("static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1")


def written_and_read(image: MetadataImage) -> MetadataImage:
    """The image through a checkpoint."""
    provenance = image.provenance
    return read_checkpoint(checkpoint_batches(image, 1_700_000_000_000), provenance.end_offset, provenance.epoch)


@pytest.mark.parametrize("moment", MOMENTS)
def test_checkpoint_of_a_captured_cluster_reads_back_equal(kafka_data: Path, moment: str) -> None:
    image = load_image(kafka_data / moment / "log")
    assert written_and_read(image) == image


@pytest.mark.parametrize("level", [7, 8, 11, 13, 15, 17, 21, 23, 29, 30])
def test_checkpoint_at_an_older_level_loses_nothing(kafka_data: Path, level: int) -> None:
    """Directories, ELRs and cordoned directories that are set stay set; what is not set needs no newer version."""
    image = load_image(kafka_data / "dynamic-small/m1/log")
    levels = image.features.levels.put(METADATA_VERSION, level)
    older = image._replace(features=FeaturesImage(levels, image.features.zk_migration_state))
    assert written_and_read(older) == older


def test_rows_of_partitions_of_several_shapes_are_not_moved_while_a_checkpoint_is_read() -> None:
    """What is moved leaves its rows behind, free; and takes as long as to put it there."""
    image = large_image(600)
    table = image.partitions
    even = table.gather(table.all_rows()[::2])
    left = np.ascontiguousarray(even.slots[:, :1])
    run = PartitionChangeRun(version=2, topic_ids=even.topic_ids, partition_ids=even.partition_ids, isr=left)
    image = replay(image, [run])
    batches = list(checkpoint_batches(image, 1, bytes_max=50_000))
    assert len(batches) == 4, "its partitions are in two of them"
    read = read_checkpoint(batches, image.provenance.end_offset, image.provenance.epoch)
    assert read == image
    assert read.partitions.row_end == len(read.partitions) == 600


def test_topics_are_in_the_order_of_their_names_and_sorted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    image, sizes = large_image(600), []

    def sorted_some(names: Iterable[str]) -> list[str]:
        found = sorted(names)
        sizes.append(len(found))
        return found

    monkeypatch.setattr(checkpoint, "sorted", sorted_some, raising=False)
    monkeypatch.setattr(checkpoint, "_NAMES_AT_ONCE", 4)
    items = checkpoint.checkpoint_items(image)
    names = [item.record.name for item in items if isinstance(item, tuple) and isinstance(item.record, TopicRecord)]

    assert names == [f"topic-{number:06}" for number in range(6)]
    assert sorted(sizes) == [0, 2, 4]
