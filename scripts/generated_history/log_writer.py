"""The log of a made-up history: batches placed one behind the other, in segments, at the times of its clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from quorate.metadata_log.batches.batch import control_batch, place_batch
from quorate.metadata_log.batches.builder import BatchBuilder, item_count, split_items
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    LeaderChangeMessage,
    Record,
    VersionedRecord,
    Voter,
)
from quorate.metadata_log.segments.segment_files import segment_name

#: A batch of so few records is written in the order of its partitions, shapes mixed, as Kafka does.
_MIXED_ROWS_MAX: Final = 24
#: Time between two batches of one operation, milliseconds.
_STEP_MS: Final = 2
_CONTROLLERS: Final = (1, 2, 3)


class HistoryIsFull(Exception):
    """All records but the last few have been written: whatever is going on ends here."""


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The properties of the log that is to be written."""

    #: Records, exactly.
    records: int
    segments: int
    #: Records before the transaction that is still open at the end.
    story_end: int
    batch_rows_max: int
    start_ms: int
    span_ms: int


class LogWriter:
    """Appends; knows where the log ends, its epoch, and whether a transaction is open."""

    def __init__(self, directory: Path, plan: LogPlan, on_batch: Callable[[bytes], None]) -> None:
        """``on_batch`` is shown every batch that was written."""
        self.plan = plan
        self.offset = 0
        self.epoch = 0
        self.clock_ms = plan.start_ms
        #: (epoch, first offset) of every epoch that has a batch.
        self.epochs: list[tuple[int, int]] = []
        self.segment_count = 0
        self.in_transaction = False
        self._directory = directory
        self._on_batch = on_batch
        self._file: BinaryIO | None = None

    # --- records -------------------------------------------------------------------------------------

    def write(self, items: Iterable[BatchItem]) -> None:
        """The records as one batch, or several where they are many.

        Raises:
            HistoryIsFull: behind the batch that reaches the story's end, outside of transactions.
        """
        rows_max = self.plan.batch_rows_max
        builder = BatchBuilder()
        for item in self._pieces(items):
            if builder.record_count and (
                builder.record_count + item_count(item) > rows_max or builder.size > BATCH_BYTES_MAX // 2
            ):
                self._append(builder.build(self.clock_ms), builder.record_count)
                builder = BatchBuilder()
            builder.add_item(item)
        if builder.record_count:
            self._append(builder.build(self.clock_ms), builder.record_count)
        self._check_full()

    def write_records(self, *records: tuple[Record, int]) -> None:
        """A few records, given with their versions, as one batch."""
        self.write([VersionedRecord(record, version) for record, version in records])

    def _pieces(self, items: Iterable[BatchItem]) -> Sequence[BatchItem]:
        present = list(items)
        runs = [item for item in present if not isinstance(item, VersionedRecord)]
        if len(runs) > 1 and sum(map(len, runs)) <= _MIXED_ROWS_MAX:
            first = next(number for number, item in enumerate(present) if not isinstance(item, VersionedRecord))
            rows = [VersionedRecord(run.record(row), run.version) for run in runs for row in range(len(run))]
            rows.sort(key=lambda row: (row.record.topic_id, row.record.partition_id))  # type: ignore[union-attr]
            rest = [item for item in present[first:] if isinstance(item, VersionedRecord)]
            present = [*present[:first], *rows, *rest]
        return list(split_items(present, BATCH_BYTES_MAX // 2, self.plan.batch_rows_max))

    def _append(self, batch: bytes, record_count: int) -> None:
        placed = place_batch(batch, self.offset, self.epoch)
        file = self._segment()
        file.write(placed)
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs.append((self.epoch, self.offset))
        self.offset += record_count
        self.clock_ms += _STEP_MS
        self._on_batch(placed)

    def _segment(self) -> BinaryIO:
        plan = self.plan
        is_due = self.segment_count < plan.segments and self.offset * plan.segments >= self.segment_count * plan.records
        if self._file is None or is_due:
            self.close()
            self._file = (self._directory / segment_name(self.offset)).open("wb")
            self.segment_count += 1
        return self._file

    def _check_full(self) -> None:
        if self.offset >= self.plan.story_end and not self.in_transaction:
            raise HistoryIsFull

    def close(self) -> None:
        """The last segment is whole."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- leaders and transactions --------------------------------------------------------------------

    def lead(self, leader: int, epoch: int) -> None:
        """A controller becomes the active one, in an epoch above the present one."""
        self.epoch = epoch
        voters = tuple(Voter(number) for number in _CONTROLLERS)
        granting = tuple(voter for voter in voters if voter.voter_id in (leader, leader % len(voters) + 1))
        self._append(control_batch([(LeaderChangeMessage(leader, voters, granting), 0)], self.clock_ms), 1)

    def begin(self, name: str) -> None:
        """A metadata transaction begins."""
        self.in_transaction = True
        self.write_records((BeginTransactionRecord(name), 0))

    def commit(self) -> None:
        """It ends."""
        self.in_transaction = False
        self.write_records((EndTransactionRecord(), 0))

    def abort(self, reason: str) -> None:
        """It is undone."""
        self.in_transaction = False
        self.write_records((AbortTransactionRecord(reason), 0))

    # --- the clock -----------------------------------------------------------------------------------

    def wait(self, milliseconds: float) -> None:
        """Time passes in which nothing is written."""
        self.clock_ms += max(0, int(milliseconds))

    def rest(self, share: float) -> None:
        """Quiet time: ``share`` (0..1) of what the clock is behind the history's pace."""
        due = self.plan.start_ms + self.plan.span_ms * self.offset // self.plan.records
        self.wait((due - self.clock_ms) * share)
