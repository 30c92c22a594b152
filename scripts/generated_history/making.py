"""Making a directory with a history in it: what ``scripts/generate-history`` does, for programs and tests."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from quorate.metadata_log.batches.batch import control_batch, data_batch, place_batch
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME, FormatPlan, format_directory
from quorate.metadata_log.directory.meta_properties import MetaProperties
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.records.records import FeatureLevelRecord, SnapshotFooterRecord, SnapshotHeaderRecord
from quorate.scripts.generated_history.brokers import GeneratedBrokers
from quorate.scripts.generated_history.checkpointing import Checkpointer
from quorate.scripts.generated_history.log_writer import HistoryIsFull, LogPlan, LogWriter
from quorate.scripts.generated_history.operations import GeneratedCluster
from quorate.scripts.generated_history.story import IncidentStory

#: Fewer records would not have room for a cluster and what happens to it.
RECORDS_MIN: Final = 1000
_START_MS: Final = int(datetime(2026, 1, 5, 6, tzinfo=UTC).timestamp() * 1000)
_DAY_MS: Final = 86_400_000
_BATCH_ROWS_MAX: Final = 10_000
_STORY_REST: Final = (60, 20_000)
_PARTITIONS_MAX: Final = 80_000
_BROKERS: Final = (6, 60)
_LATER_BROKERS: Final = 100


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """The parameters of a history: the same plan gives the same bytes."""

    records: int
    seed: int
    segments: int = 1
    days: int = 180
    #: About how many the cluster has; None = one for 40 records, at most 80,000.
    partitions: int | None = None
    #: None = as many as suit the partitions, 6 to 60.
    brokers: int | None = None
    #: A checkpoint with its manifest every so many records; 0 = none.
    checkpoint_every: int = 0

    @property
    def partition_count(self) -> int:
        """About how many partitions the cluster has."""
        return self.partitions or min(_PARTITIONS_MAX, self.records // 40)

    @property
    def broker_count(self) -> int:
        """Brokers at the beginning."""
        return self.brokers or min(_BROKERS[1], max(_BROKERS[0], self.partition_count // 100))


@dataclass(frozen=True, slots=True)
class MadeHistory:
    """The history that was made by a plan."""

    operations: GeneratedCluster
    end_offset: int
    segments: int
    epochs: int
    checkpoints: int


def make_history(plan: GenerationPlan, directory: Path, on_records: Callable[[int], None]) -> MadeHistory:
    """Format ``directory`` and write the plan's history into it.

    Args:
        on_records: told how many records each batch had.

    Raises:
        DirectoryError: there is something there already.
    """
    random = np.random.Generator(np.random.PCG64(plan.seed))
    _format(directory, plan, random)
    log_directory = directory / LOG_DIRECTORY_NAME
    checkpointer = Checkpointer(log_directory, plan.checkpoint_every) if plan.checkpoint_every else None
    written = 0

    def on_batch(batch: bytes) -> None:
        nonlocal written
        on_records(log.offset - written)
        written = log.offset
        if checkpointer is not None:
            checkpointer.take(batch)

    log = LogWriter(log_directory, _log_plan(plan), on_batch)
    operations = GeneratedCluster(random, log, GeneratedBrokers(random, plan.broker_count, _LATER_BROKERS))
    story = IncidentStory(operations, plan.partition_count)
    try:
        story.run()
    except HistoryIsFull:
        story.end_open()
    finally:
        log.close()
    lines = [f"{epoch} {offset}\n" for epoch, offset in log.epochs]
    (log_directory / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}", encoding="ascii")
    _write_quorum_state(log_directory, log.epoch)
    return MadeHistory(
        operations, log.offset, log.segment_count, len(log.epochs), 0 if checkpointer is None else checkpointer.count
    )


def _log_plan(plan: GenerationPlan) -> LogPlan:
    records = plan.records
    rest = min(_STORY_REST[1], max(_STORY_REST[0], records // 20))
    return LogPlan(
        records=records,
        segments=plan.segments,
        story_end=records - rest,
        batch_rows_max=max(1, min(_BATCH_ROWS_MAX, records // 200, records // plan.segments)),
        start_ms=_START_MS,
        span_ms=plan.days * _DAY_MS,
    )


def _format(directory: Path, plan: GenerationPlan, random: np.random.Generator) -> None:
    cluster_id = base64.urlsafe_b64encode(b"\x20" + random.bytes(15)).rstrip(b"=").decode()
    bootstrap = [
        control_batch([(SnapshotHeaderRecord(_START_MS), 0)], _START_MS),
        data_batch([(FeatureLevelRecord("metadata.version", 21), 0)], _START_MS),
        control_batch([(SnapshotFooterRecord(), 0)], _START_MS),
    ]
    directory.parent.mkdir(parents=True, exist_ok=True)
    format_directory(
        RealDisk(),
        str(directory),
        FormatPlan(
            meta=MetaProperties(cluster_id, 1, b"\x20" + random.bytes(15)),
            bootstrap=b"".join(place_batch(batch, offset, 0) for offset, batch in enumerate(bootstrap)),
            voters=None,
            quorum_state=None,
        ),
    )


def _write_quorum_state(log_directory: Path, epoch: int) -> None:
    """Of a node that has followed the last leader."""
    state = QuorumState(leader_epoch=epoch, data_version=0, current_voters=(1, 2, 3))
    (log_directory / QUORUM_STATE_NAME).write_bytes(encode_quorum_state(state))
