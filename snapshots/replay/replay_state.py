"""``ReplayState``: what everyone who replays holds. It knows metadata transactions.

Records between Begin and End gather in ``pending``; nobody publishes, checkpoints, digests or answers from it. The
state at an offset inside a transaction is the state before its Begin, and so is the provenance of ``stable``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from quorate.metadata_log.batches.batch import BatchHeader, iter_records, parse_header
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    VersionedRecord,
)
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage, uncounted
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay

_MARKERS: Final = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})


class ReplayState(NamedTuple):
    """Replay so far. An immutable value: whoever keeps one can go back to it."""

    #: The state outside of any transaction; it covers everything but what is pending.
    stable: MetadataImage = EMPTY_IMAGE
    #: Inside a transaction: stable and what has been replayed since its Begin.
    pending: MetadataImage | None = None
    #: Offset of the open transaction's Begin.
    begin_offset: int | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.pending is not None

    @property
    def head(self) -> MetadataImage:
        """The image that the next record is replayed onto."""
        return self.stable if self.pending is None else self.pending

    @property
    def end_offset(self) -> int:
        """Exclusive end of what has been replayed, pending records included."""
        return self.head.provenance.end_offset

    def uncounted(self) -> ReplayState:
        """The same, and no counts of partitions are kept of what is replayed onto it."""
        return self._replace(
            stable=uncounted(self.stable), pending=None if self.pending is None else uncounted(self.pending)
        )

    def replay_batch(self, buf: Buffer, pos: int = 0, below: int | None = None) -> ReplayState:
        """The state after the batch at ``pos``, whose CRC the caller has checked.

        Args:
            below: leave out its records from this offset on.

        Raises:
            ReplayError: a record cannot be replayed; its offset is in the error.
            MalformedData: the batch is not in the format.
        """
        header = parse_header(buf, pos)
        if below is not None and below < header.end_offset:
            return self._replay_below(buf, pos, header, below)
        try:
            return self.replay_items(
                decode_batch(buf, pos),
                header.base_offset,
                header.epoch,
                header.timestamp,
                is_control=header.is_control,
            )
        except ReplayError:
            self._locate(buf, pos, header)

    def _replay_below(self, buf: Buffer, pos: int, header: BatchHeader, below: int) -> ReplayState:
        items = [VersionedRecord(r.record, r.version) for r in iter_records(buf, pos) if r.offset < below]
        return self.replay_items(
            items, header.base_offset, header.epoch, header.timestamp, is_control=header.is_control
        )

    def replay_items(
        self, items: Sequence[BatchItem], base_offset: int, epoch: int, log_time_ms: int, *, is_control: bool = False
    ) -> ReplayState:
        """The state after the records of one batch, or some in a row of them, already decoded.

        Args:
            base_offset: of the first of them.
            epoch, log_time_ms, is_control: the batch's.

        Raises:
            ReplayError: a record cannot be replayed; its offset is not known here.
        """
        end_offset = base_offset
        has_markers = False
        for item in items:
            if isinstance(item, VersionedRecord):
                end_offset += 1
                has_markers |= type(item.record) in _MARKERS
            else:
                end_offset += len(item)
        if has_markers:
            return self._replay_around_markers(items, base_offset, epoch, log_time_ms)
        return self._advanced(items, Provenance(end_offset - 1, epoch, log_time_ms), is_control=is_control)

    def _replay_around_markers(
        self, items: Sequence[BatchItem], offset: int, epoch: int, log_time_ms: int
    ) -> ReplayState:
        """As ``replay_items``, for records among which a transaction begins or ends: never control records."""
        state = self
        waiting: list[BatchItem] = []
        for item in items:
            if isinstance(item, VersionedRecord) and type(item.record) in _MARKERS:
                if waiting:
                    state = state._advanced(waiting, Provenance(offset - 1, epoch, log_time_ms))
                    waiting = []
                state = state._marked(item.record, Provenance(offset, epoch, log_time_ms))
            else:
                waiting.append(item)
            offset += 1 if isinstance(item, VersionedRecord) else len(item)
        return state._advanced(waiting, Provenance(offset - 1, epoch, log_time_ms))

    def _advanced(self, items: Sequence[BatchItem], provenance: Provenance, *, is_control: bool = False) -> ReplayState:
        if self.pending is None:
            return ReplayState(replay(self.stable, items, provenance))
        pending = replay(self.pending, items, provenance)
        # Control records are not part of a metadata transaction: aborting it does not undo them.
        stable = replay(self.stable, items) if is_control else self.stable
        return ReplayState(stable, pending, self.begin_offset)

    def _marked(self, record: object, provenance: Provenance) -> ReplayState:
        """The state behind a marker, which the provenance ends with: another one may follow at once."""
        if isinstance(record, BeginTransactionRecord):
            if self.pending is not None:
                raise ReplayError(f"a transaction begins inside the one that began at offset {self.begin_offset}")
            return ReplayState(self.stable, self.stable, provenance.last_contained_offset)
        if self.pending is None:
            raise ReplayError(f"{type(record).__name__} outside of a transaction")
        if isinstance(record, EndTransactionRecord):
            return ReplayState(self.pending._replace(provenance=provenance))
        return ReplayState(self.stable._replace(provenance=provenance))

    def _locate(self, buf: Buffer, pos: int, header: BatchHeader) -> NoReturn:
        """Replay record by record to say which one fails."""
        state = self
        for logged in iter_records(buf, pos):
            item = VersionedRecord(logged.record, logged.version)
            try:
                state = state.replay_items(
                    [item], logged.offset, header.epoch, header.timestamp, is_control=header.is_control
                )
            except ReplayError as error:
                raise ReplayError(error.reason, logged.offset) from error
        raise ReplayError("its records can be replayed one by one, but not together", header.base_offset)
