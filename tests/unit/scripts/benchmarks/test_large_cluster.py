"""The metadata that the benchmarks measure with are those of a healthy cluster."""

from pathlib import Path

import numpy as np
import pytest

from quorate.scripts.benchmarks.large_cluster import BROKERS, large_image, write_checkpoint
from quorate.snapshots.checkpoints.loading import load_image


def test_large_image_gives_every_broker_a_quarter_of_the_partitions_all_in_sync_and_led() -> None:
    image = large_image(2_400)
    table = image.partitions

    assert len(table) == 2_400
    assert len(image.topics) == 24
    assert len(image.cluster.active_brokers()) == BROKERS
    for broker in image.cluster.brokers:
        assert len(table.rows_with_replica(broker)) == len(table.rows_with_isr(broker)) == 600
        assert len(table.rows_led_by(broker)) == 200
    assert len(table.rows_not_led_by_preferred()) == 0


def test_large_image_has_four_brokers_that_share_no_partition() -> None:
    table = large_image(1_200).partitions

    rows = np.concatenate([table.rows_with_replica(broker) for broker in (12, 9, 6, 3)])

    assert len(np.unique(rows)) == len(rows) == 1_200


@pytest.mark.parametrize("partitions", [0, 250])
def test_large_image_written_as_checkpoint_loads_as_itself(tmp_path: Path, partitions: int) -> None:
    image = large_image(partitions)

    assert load_image(write_checkpoint(tmp_path, image)) == image
