"""The state tables that the planner needs, from a folded log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from quorate.metadata_log.ids import uuid_text
from quorate.pipeline.files.inputs import InputCluster
from quorate.pipeline.files.ranges import Task, plan_checkpoint, plan_log
from quorate.pipeline.files.replay_bases import replay_base
from quorate.pipeline.files.walk import EVERYTHING, RecordSelection
from quorate.pipeline.fold.fields import DIRECTORIES
from quorate.pipeline.fold.state import FoldedState
from quorate.pipeline.tables.state_tables import directory_texts

#: An offset that no log reaches: the state at it is the last.
LAST: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class Reading:
    """A task to be folded, and which of its records count."""

    task: Task
    wanted: RecordSelection


def readings(cluster: InputCluster, at: int | None) -> list[Reading]:
    """Return what is to be read for the state below an offset: the newest usable checkpoint, and the log behind it.

    Raises:
        InputError: the log does not reach back to a checkpoint or to offset 0.
    """
    base = replay_base(cluster, at)
    found = (
        []
        if base.checkpoint is None
        else [Reading(one, EVERYTHING) for one in plan_checkpoint(cluster, base.checkpoint)]
    )
    tail = RecordSelection(first_offset=base.first_offset, end_offset=at)
    tasks: Iterable[Task] = plan_log(cluster, first_offset=base.first_offset, end_offset=at)
    return [*found, *(Reading(one, tail) for one in tasks)]


def state_tables(state: FoldedState) -> tuple[pa.Table, pa.Table]:
    """Return the tables of partitions and of brokers, with the columns that `planning.tables` takes."""
    found, catalogue = state.partitions, state.catalogue
    lists = found.lists
    partitions = pa.table(
        {
            "topic": [catalogue.topics[one.tobytes()].name for one in found.topic_ids],
            "partition": np.asarray(found.partition_ids, np.int32),
            "replicas": lists["replicas"],
            "directories": directory_texts(lists[DIRECTORIES]),
            "removing_replicas": lists["removing_replicas"],
            "adding_replicas": lists["adding_replicas"],
            "leader": np.asarray(found.leader, np.int32),
        }
    )
    brokers = list(catalogue.brokers.values())
    return partitions, pa.table(
        {
            "broker_id": pa.array([one.broker_id for one in brokers], pa.int32()),
            "rack": pa.array([one.rack for one in brokers], pa.string()),
            "fenced": pa.array([one.fenced for one in brokers], pa.bool_()),
            "log_dirs": pa.array(
                [[uuid_text(directory) for directory in one.log_dirs] for one in brokers], pa.list_(pa.string())
            ),
        }
    )
