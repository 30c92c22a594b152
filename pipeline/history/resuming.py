"""The points from which a history can be continued, and the check that a log is the one to continue with.

A history that was made to be gone on with notes of each cluster where it ends, and the batch that its last record is
in: where that batch begins, its epoch and its CRC. Two logs of a cluster that agree in the epoch at an offset agree in
all before it (Raft's log matching), so a log that holds this very batch is the one that was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from quorate.pipeline.files.inputs import InputCluster, InputError
from quorate.pipeline.files.ranges import all_ranges, plan_log
from quorate.pipeline.files.walk import RecordSelection, read_range


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The marks that tell a batch from another at its place."""

    base_offset: int
    epoch: int
    crc: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}, CRC {self.crc:08x}"


@dataclass(frozen=True, slots=True)
class Resume:
    """The point from which an append goes on."""

    #: Of the first record to be read: the end, or where a transaction begins that is still open there.
    offset: int
    #: None where the history is that of a checkpoint alone.
    batch: LastBatch | None
    #: The file with the cluster's state at ``offset``, but for its partitions.
    state: str


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """The part of a cluster's log that a history has."""

    cluster_id: str
    #: Offsets: from the first record that is in it, to the end (exclusive).
    first_offset: int
    end_offset: int
    records: int
    #: None: the history cannot be gone on with.
    resume: Resume | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The value of which ``dataclasses.asdict`` made this; raises ``KeyError``, ``TypeError`` where it is none."""
        resume = data.get("resume")
        if resume is not None:
            batch = resume["batch"]
            resume = Resume(**{**resume, "batch": None if batch is None else LastBatch(**batch)})
        return cls(**{**data, "resume": resume})

    def followed_by(self, later: ClusterRead) -> ClusterRead:
        """Both together; the later one begins where this one ends."""
        records = self.records + later.records
        return ClusterRead(self.cluster_id, self.first_offset, later.end_offset, records, later.resume)


def batch_at(cluster: InputCluster, offset: int) -> LastBatch | None:
    """The batch of the log that a record is in; None where the log ends before it, or begins behind it.

    Raises:
        CorruptBatch, StorageError: what is read on the way is damaged.
    """
    wanted = RecordSelection(offset, offset + 1)
    for one in all_ranges(plan_log(cluster, first_offset=offset, end_offset=offset + 1)):
        for chunk in read_range(one, wanted):
            found = chunk.batches
            return LastBatch(int(found.base_offsets[0]), int(found.epochs[0]), int(found.crcs[0]))
    return None


def require_goes_on(cluster: InputCluster, held: ClusterRead) -> Resume:
    """See to it that a log goes on where a history of its cluster ends, and return where.

    Raises:
        InputError: it begins later, ends earlier, or is another log.
        StorageError: it is damaged there; or the history was not made to be gone on with.
    """
    resume = held.resume
    assert resume is not None  # the tables say so of all clusters, or are refused
    holds = f"the tables hold the offsets {held.first_offset} to {held.end_offset - 1}"
    if not cluster.segments:
        raise InputError(
            cluster.checkpoints[0].name, f"is a checkpoint without a log, and {holds}",
            f"add the segments from offset {resume.offset} on",
        )  # fmt: skip
    first = cluster.segments[0]
    if first.offset > resume.offset:
        raise InputError(
            first.name, f"the log begins at offset {first.offset}, and {holds}",
            f"add the segments from offset {resume.offset} on",
        )  # fmt: skip
    batch = resume.batch
    if batch is None:
        return resume
    if first.offset > batch.base_offset:
        if first.epoch is not None and first.epoch < batch.epoch:
            raise _other(first.name, f"at offset {first.offset} it has epoch {first.epoch}", holds, batch)
        return resume
    found = batch_at(cluster, batch.base_offset)
    if found is None:
        raise InputError(
            cluster.segments[-1].name, f"the log ends before offset {batch.base_offset}, and {holds}",
            "give the log that the tables were made of",
        )  # fmt: skip
    if found != batch:
        raise _other(cluster.segments[-1].name, f"at offset {found.base_offset} it has {found}", holds, batch)
    return resume


def _other(name: str, has: str, holds: str, batch: LastBatch) -> InputError:
    return InputError(
        name, f"is another log than that of the tables: {has}; {holds}, the last of them in a batch with {batch}",
        "give the log that they were made of, or make new tables of this one",
    )  # fmt: skip
