"""The leader of an epoch: named by the first record of each."""

from __future__ import annotations

from pathlib import Path

from quorate.metadata_log.batches.batch import BatchHeader, iter_records
from quorate.metadata_log.directory.reader import LogFile, find_files, iter_batches
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.records.records import LeaderChangeMessage
from quorate.metadata_log.records.wire import Buffer


def named_leader(header: BatchHeader, batch: Buffer) -> int | None:
    """The leader from this batch on; None where it does not name one. The caller has checked the CRC."""
    if header.is_control:
        for logged in iter_records(batch):
            if isinstance(logged.record, LeaderChangeMessage):
                return logged.record.leader_id
    return None


def leader_in_files(path: Path, epoch: int) -> int | None:
    """The leader of an epoch, by the segments that a path stands for; None where its begin is not in them, or is
    damaged.
    """
    try:
        segments = [file for file in find_files(path) if not file.is_checkpoint]
        earlier = [place for place, segment in enumerate(segments) if _first_epoch(segment) < epoch]
        start = earlier[-1] if earlier else 0
        for segment in segments[start : start + 2]:
            for batch in iter_batches(segment):
                if batch.header.epoch >= epoch:
                    return named_leader(batch.header, batch.data) if batch.header.epoch == epoch else None
    except StorageError:
        pass  # The state was read all the same: from a checkpoint behind the damage.
    return None


def _first_epoch(segment: LogFile) -> int:
    """-1 where it is empty."""
    return next((batch.header.epoch for batch in iter_batches(segment)), -1)
