"""A cluster for the planner from the pipeline's tables of state, and from a file of sizes."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quorate.controller.planning.cluster import NONE, BrokerRole, Brokers, ClusterLayout, Counts, Indexes
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.planning.directories import lost_replicas


class UnknownBroker(PipelineError):
    """A broker that is to be drained or left out is not one of the cluster's."""


class BadSizes(PipelineError):
    """A file of sizes cannot be read as one."""


@dataclass(frozen=True)
class NamedCluster:
    """A cluster with the names of its partitions, row by row in the order of (topic, partition).

    Attributes:
        leaders: the broker index of each partition's leader at that moment, `NONE` without one. in_motion: how many
            partitions had a reassignment open; they stand where it would have brought them.
    """

    cluster: ClusterLayout
    topics: NDArray[np.object_]
    partitions: Counts
    leaders: Indexes
    in_motion: int

    def name(self, row: int) -> str:
        return f"{self.topics[row]}-{self.partitions[row]}"


def named_cluster(
    partitions: pa.Table,
    brokers: pa.Table,
    *,
    drained: Collection[int] = (),
    excluded: Collection[int] = (),
    sizes: Mapping[tuple[str, int], float] | None = None,
) -> NamedCluster:
    """Return the cluster of two state tables.

    Args:
        partitions: with topic, partition, replicas, directories, removing_replicas, adding_replicas, leader. brokers:
            with broker_id, rack, fenced, log_dirs. drained: brokers that are to hold nothing. excluded: brokers that
            get nothing and keep what they have, as fenced ones do. sizes: bytes of a replica by partition; what is
            missing has none.

    Raises:
        UnknownBroker: one that is drained or excluded is not registered and holds no replica.
        BadDirectories: the directories are not those of the replicas.
    """
    partitions = partitions.sort_by([("topic", "ascending"), ("partition", "ascending")])
    ids, removing = _padded(partitions["replicas"]), _padded(partitions["removing_replicas"])
    lost = lost_replicas(partitions, brokers, ids)
    # What is being removed does not count, wherever it stands in its row.
    is_removed = _is_in(ids, removing)
    ids[is_removed], lost[is_removed] = NONE, False
    packed = np.argsort(ids == NONE, axis=1, kind="stable")
    ids, lost = np.take_along_axis(ids, packed, axis=1), np.take_along_axis(lost, packed, axis=1)
    known = _brokers(brokers, ids, drained, excluded)
    replicas = np.searchsorted(known.ids, ids).astype(np.int32)
    replicas[ids == NONE] = NONE
    leaders = np.asarray(pc.fill_null(partitions["leader"], NONE).to_numpy(), np.int32)
    found = np.searchsorted(known.ids, leaders).clip(max=max(len(known) - 1, 0))
    leaders = np.where(known.ids[found] == leaders, found, NONE).astype(np.int32) if len(known) else leaders
    topics = partitions["topic"].to_numpy()
    numbers = np.asarray(partitions["partition"].to_numpy(), np.int64)
    bytes_of = None
    if sizes is not None:
        keys = zip(topics.tolist(), numbers.tolist(), strict=True)
        bytes_of = np.array([sizes.get(key, 0.0) for key in keys], np.float64)
    in_motion = _lengths(partitions["removing_replicas"]) + _lengths(partitions["adding_replicas"])
    return NamedCluster(
        ClusterLayout(known, replicas, bytes_of, lost if lost.any() else None),
        topics,
        numbers,
        leaders,
        int(np.count_nonzero(in_motion)),
    )


def read_sizes(path: Path) -> dict[tuple[str, int], float]:
    """Read sizes in bytes from a file of lines `topic,partition,bytes`; a first line of names is skipped.

    Raises:
        BadSizes: it cannot be read, or a line is not of this form.
    """
    sizes: dict[tuple[str, int], float] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, line in enumerate(csv.reader(file), start=1):
                if line and not (number == 1 and line[1:2] == ["partition"]):
                    sizes.update([_size(path, number, line)])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadSizes(f"{path} cannot be read as sizes: {error}") from error
    return sizes


def _size(path: Path, number: int, line: list[str]) -> tuple[tuple[str, int], float]:
    try:
        topic, partition, size = line
        known = (topic, int(partition)), float(size)
    except ValueError:
        raise BadSizes(f"{path}, line {number}: a line is `topic,partition,bytes`, as orders,0,1048576") from None
    if not (math.isfinite(known[1]) and known[1] >= 0):
        raise BadSizes(f"{path}, line {number}: {size} is no size in bytes")
    return known


def _brokers(table: pa.Table, ids: Indexes, drained: Collection[int], excluded: Collection[int]) -> Brokers:
    """Return the brokers: the registered ones, and those that only hold replicas, which are drained."""
    rows: list[dict[str, Any]] = table.select(["broker_id", "rack", "fenced"]).to_pylist()
    racks: dict[int, str | None] = {row["broker_id"]: row["rack"] for row in rows}
    roles = {row["broker_id"]: BrokerRole.KEEPS for row in rows if row["fenced"]}
    for gone in np.unique(ids[ids != NONE]).tolist():
        if gone not in racks:
            racks[gone], roles[gone] = None, BrokerRole.DRAINS
    unknown = sorted({*drained, *excluded} - set(racks))
    if unknown:
        raise UnknownBroker(f"there is no broker {', '.join(map(str, unknown))}: {', '.join(map(str, sorted(racks)))}")
    roles |= dict.fromkeys(excluded, BrokerRole.KEEPS) | dict.fromkeys(drained, BrokerRole.DRAINS)
    return Brokers.of(racks, roles)


def _lengths(lists: pa.ChunkedArray) -> Counts:
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(), np.int64)


def _padded(lists: pa.ChunkedArray) -> Indexes:
    """Return lists as rows of equal length, `NONE` behind the last."""
    lengths = _lengths(lists)
    rows = np.full((len(lengths), max(int(lengths.max(initial=0)), 1)), NONE, np.int32)
    values = np.asarray(pc.list_flatten(lists).to_numpy(), np.int32)
    starts = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(len(lengths)), lengths)
    rows[row, np.arange(len(values)) - starts[row]] = values
    return rows


def _is_in(rows: Indexes, others: Indexes) -> NDArray[np.bool_]:
    return np.asarray((rows[:, :, None] == others[:, None, :]).any(axis=2) & (rows != NONE))
