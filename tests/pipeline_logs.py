"""Logs and checkpoints on disk for the tests of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quorate.metadata_log.batches.batch import control_batch, data_batch, place_batch
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.directory.meta_properties import MetaProperties, encode_meta_properties
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.ids import ZERO_UUID
from quorate.metadata_log.records.records import (
    ConfigRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
)
from quorate.metadata_log.segments.mark import Mark, MarkFile
from quorate.metadata_log.segments.segment_files import segment_name

KAFKA = Path(__file__).parent / "data" / "kafka"
#: A real log of two thousand small and a few large batches in five segments, with three checkpoints.
KAFKA_LOG = KAFKA / "static" / "m2" / "log"
#: A real log whose head is gone: it begins at 12538, with a checkpoint at 15719.
BEHEADED_LOG = KAFKA / "static" / "m4" / "log"
TIME = 1_700_000_000_000


class LogWriter:
    """Writes a directory: batches of a few records each, one second apart."""

    def __init__(self, path: Path, cluster_id: str | None = "cluster-a") -> None:
        self.path = path
        self.directory = path / LOG_DIRECTORY_NAME
        self.directory.mkdir(parents=True)
        if cluster_id is not None:
            meta = encode_meta_properties(MetaProperties(cluster_id, 1, ZERO_UUID))
            (path / "meta.properties").write_bytes(meta)
        self.offset = 0
        self.epoch = 1
        self.segment = self.directory / segment_name(0)
        self.segment.touch()

    def roll(self) -> None:
        """The next batch begins a segment."""
        self.segment = self.directory / segment_name(self.offset)
        self.segment.touch()

    def append(self, records: Sequence[Any], versions: Sequence[int] | None = None, time: int | None = None) -> int:
        """One batch; its base offset. ``time``: milliseconds since 1970, another one than its own second."""
        base = self.offset
        pairs = list(zip(records, versions or [newest(record) for record in records], strict=True))
        batch = data_batch(pairs, TIME + base * 1000 if time is None else time)
        batch = place_batch(batch, base, self.epoch)
        with self.segment.open("ab") as stream:
            stream.write(batch)
        self.offset += len(records)
        return base

    def elect(self, leader: int) -> None:
        """The first record of an epoch, which names its leader; Kafka writes it as a control batch."""
        batch = control_batch([(LeaderChangeMessage(leader), 0)], TIME + self.offset * 1000)
        with self.segment.open("ab") as stream:
            stream.write(place_batch(batch, self.offset, self.epoch))
        self.offset += 1

    def append_small(self, batches: int) -> None:
        """Batches of some records of several types."""
        for _ in range(batches):
            self.append(small_batch(self.offset))

    def mark(self, commit: int) -> None:
        """As a node's own directory: all of it is durable, and what is below ``commit`` is committed."""
        file = MarkFile(RealDisk(), str(self.directory))
        for _ in file.create(Mark(self.offset, self.epoch, commit)):
            pass
        file.close()

    def checkpoint(self, end_offset: int, *, cut: int = 0) -> Path:
        """A checkpoint of one topic; ``cut`` bytes are left out at its end."""
        parts = [
            (control_batch([(SnapshotHeaderRecord(TIME), 0)], TIME), 1),
            (data_batch([(TopicRecord("t", bytes(16)), 0)], TIME), 1),
            (control_batch([(SnapshotFooterRecord(), 0)], TIME), 1),
        ]
        data = b"".join(place_batch(part, base, self.epoch) for base, (part, _) in enumerate(parts))
        path = self.directory / f"{end_offset:020d}-{self.epoch:010d}.checkpoint"
        path.write_bytes(data[: len(data) - cut])
        return path


def newest(record: Any) -> int:
    """The version that Kafka 4.3 writes."""
    return {PartitionRecord: 2, PartitionChangeRecord: 2}.get(type(record), 0)


def small_batch(seed: int) -> list[Any]:
    """A few records that depend on ``seed`` only."""
    topic_id = seed.to_bytes(16, "big")
    records: list[Any] = [NoOpRecord()] if seed % 3 == 0 else [TopicRecord(f"topic-{seed}", topic_id)]
    records += [PartitionRecord(n, topic_id, (1, 2), (1, 2), leader=1) for n in range(seed % 4)]
    records += [PartitionChangeRecord(n, topic_id, isr=(1,), leader=n % 3 - 2) for n in range(seed % 7)]
    records.append(ConfigRecord(2, f"topic-{seed}", "retention.ms", None if seed % 2 else "1"))
    return records
