"""The independent fold of captured Kafka clusters: Kafka's own image, and the digest of the controllers' replay."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.json_form import record_from_data
from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import plan_checkpoint, plan_log
from quorate.pipeline.files.replay_bases import replay_base
from quorate.pipeline.files.walk import EVERYTHING, RecordSelection
from quorate.pipeline.fold.reading import fold_task
from quorate.pipeline.fold.state import FoldedState, state_at
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.whole_checkpoints import load_checkpoint
from quorate.snapshots.image_digest import digest_image
from tests.random_logs.logs import naive_digest

MOMENTS = ("static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1")
#: Moments whose log reaches back to offset 0.
WHOLE_LOGS = ("static/m1", "static/m2", "static/m3", "dynamic-small/m1")


def cluster_of(directory: Path) -> InputCluster:
    return find_inputs([str(directory)])[0]


def newest_base(directory: Path) -> int:
    return replay_base(cluster_of(directory)).first_offset


def state_from(directory: Path, base: int, moment: int, range_bytes: int = 10_000) -> FoldedState:
    """From the checkpoint at an offset, if there is one, and the log behind it."""
    cluster = cluster_of(directory)
    plan = [
        (task, EVERYTHING)
        for file in cluster.checkpoints
        if file.offset == base
        for task in plan_checkpoint(cluster, file)
    ]
    tail = RecordSelection(first_offset=base, end_offset=moment)
    plan += [(task, tail) for task in plan_log(cluster, first_offset=base, end_offset=moment, range_bytes=range_bytes)]
    return state_at([fold_task(task, wanted, (moment,))[0] for task, wanted in plan], moment)


@pytest.mark.parametrize("moment", MOMENTS)
def test_state_from_newest_checkpoint_and_tail_is_kafkas_image(kafka_data: Path, moment: str) -> None:
    directory = kafka_data / moment / "log"
    end = json.loads((kafka_data / moment / "expected.json").read_text(encoding="utf-8"))["log"]["end_offset"]
    state = state_from(directory, newest_base(directory), end)

    assert state.digest() == digest_image(load_image(directory)).value
    with gzip.open(kafka_data / moment / "image.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    kafkas = [record_from_data(row["type"], row["version"], row["data"]).record for row in rows]
    # The image does not say what control records say: kraft.version and the voters.
    state.catalogue.kraft_version, state.catalogue.voters = 0, None
    assert state.digest() == naive_digest(
        [record for record in kafkas if not type(record).__name__.startswith("KRaft")]
    )


@pytest.mark.parametrize("moment", WHOLE_LOGS)
def test_state_from_offset_0_is_that_of_every_checkpoint(kafka_data: Path, moment: str) -> None:
    directory = kafka_data / moment / "log"
    for file in find_files(directory):
        if file.is_checkpoint and file.offset:
            expected = digest_image(load_checkpoint(file)).value

            assert state_from(directory, 0, file.offset).digest() == expected
            assert state_from(directory, file.offset, file.offset).digest() == expected


@pytest.mark.parametrize("moment", MOMENTS)
def test_partitions_are_what_the_cluster_answered(kafka_data: Path, moment: str) -> None:
    directory = kafka_data / moment / "log"
    expected = json.loads((kafka_data / moment / "expected.json").read_text(encoding="utf-8"))
    state = state_from(directory, newest_base(directory), expected["log"]["end_offset"])
    columns = expected["partition_columns"]
    theirs = {
        (topic["id"], int(number)): dict(zip(columns, row, strict=True))
        for topic in expected["topics"].values()
        for number, row in topic["partitions"].items()
    }

    found = state.partitions
    isrs, replicas = found.lists["isr"].to_pylist(), found.lists["replicas"].to_pylist()
    assert len(found) == len(theirs)
    for row in range(len(found)):
        their = theirs[uuid_text(found.topic_ids[row].tobytes()), int(found.partition_ids[row])]
        assert (int(found.leader[row]), int(found.leader_epoch[row])) == (their["leader"], their["leader_epoch"])
        assert (isrs[row], replicas[row]) == (their["isr"], their["replicas"])
        assert int(found.partition_epoch[row]) == their["partition_epoch"]
