"""The start of an epoch: the activation records, and the records that a fresh cluster starts with.

Kafka's ``ActivationRecordsGenerator`` and ``BootstrapMetadata``. One difference: whether the log is empty is judged on
stable state, so a bootstrap that was cut half-way is aborted and written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from quorate.controller.decisions.decision import Decision
from quorate.metadata_log.batches.batch import control_batch, data_batch, iter_records, parse_header, place_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import CorruptCheckpoint, MalformedData
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    Record,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, ELR_VERSION, METADATA_VERSION, FeaturesImage
from quorate.snapshots.replay.replay_state import ReplayState

#: What a cluster formatted by Kafka 4.3.1 starts with. ``kraft.version`` is a control record, not one of these.
FRESH_FEATURES: Final[tuple[tuple[str, int], ...]] = (
    (METADATA_VERSION, 30),
    (ELR_VERSION, 1),
    ("group.version", 1),
    ("share.version", 1),
    ("streams.version", 1),
    ("transaction.version", 2),
)
_BOOTSTRAP_NAME: Final = "Bootstrap records"
#: Metadata transactions exist from 3.6-IV1 on.
_TRANSACTIONS_LEVEL: Final = 13
_MIN_ISR: Final = "min.insync.replicas"


def fresh_records() -> tuple[VersionedRecord, ...]:
    """The feature levels of a fresh cluster."""
    return tuple(VersionedRecord(FeatureLevelRecord(name, level), 0) for name, level in FRESH_FEATURES)


def bootstrap_checkpoint(timestamp_ms: int, records: Sequence[VersionedRecord] | None = None) -> bytes:
    """Content of a ``bootstrap.checkpoint``: of these records, or of those of a fresh cluster."""
    records = fresh_records() if records is None else records
    head: list[tuple[Record, int]] = [(SnapshotHeaderRecord(), 0)]
    footer: list[tuple[Record, int]] = [(SnapshotFooterRecord(), 0)]
    batches = (control_batch(head, timestamp_ms), data_batch(list(records), timestamp_ms))
    placed = place_batch(batches[0], 0, 0) + place_batch(batches[1], 1, 0)
    return placed + place_batch(control_batch(footer, timestamp_ms), 1 + len(records), 0)


def feature_records(features: FeaturesImage) -> list[VersionedRecord]:
    """The feature levels of a state."""
    return [VersionedRecord(FeatureLevelRecord(name, level), 0) for name, level in sorted(features.levels.items())]


def bootstrap_records(checkpoint: bytes, path: str) -> tuple[VersionedRecord, ...]:
    """The data records of a ``bootstrap.checkpoint``.

    Raises:
        CorruptCheckpoint: it is not whole, or not in the format.
    """
    records: list[VersionedRecord] = []
    position = 0
    try:
        while position < len(checkpoint):
            header = parse_header(checkpoint, position)
            if not header.is_control:
                records += (VersionedRecord(r.record, r.version) for r in iter_records(checkpoint, position))
            position += header.size
    except MalformedData as error:
        raise CorruptCheckpoint(path, str(error)) from error
    return tuple(records)


def decide_activation(
    state: ReplayState, bootstrap: Sequence[VersionedRecord], default_min_isr: int = 1
) -> Decision[None]:
    """The records that a new active controller writes first.

    A transaction that an earlier one left open is aborted. An empty log gets ``bootstrap``, between Begin and End
    where the level has transactions.

    Args:
        default_min_isr: written as the cluster's ``min.insync.replicas`` where ELR is on from the start.
    """
    records: list[BatchItem] = []
    if state.in_transaction:
        records.append(VersionedRecord(AbortTransactionRecord("Controller failover"), 0))
    if state.stable.features.metadata_version == 0:
        records += _bracketed(_with_min_isr(bootstrap, default_min_isr))
    return Decision(records, None, is_internal=True)


def _with_min_isr(bootstrap: Sequence[VersionedRecord], default_min_isr: int) -> list[VersionedRecord]:
    """With ELR on, the cluster-wide minimum stands in the log: controllers must not differ in it (KIP-966)."""
    records = list(bootstrap)
    if _level(bootstrap, ELR_VERSION) > 0 and not any(
        isinstance(r.record, ConfigRecord) and r.record.name == _MIN_ISR for r in bootstrap
    ):
        config = ConfigRecord(BROKER_RESOURCE, "", _MIN_ISR, str(default_min_isr))
        records.append(VersionedRecord(config, 0))
    return records


def _bracketed(records: Iterable[VersionedRecord]) -> list[VersionedRecord]:
    body = list(records)
    if _level(body, METADATA_VERSION) < _TRANSACTIONS_LEVEL:
        return body
    begin = VersionedRecord(BeginTransactionRecord(_BOOTSTRAP_NAME), 0)
    return [begin, *body, VersionedRecord(EndTransactionRecord(), 0)]


def _level(records: Iterable[VersionedRecord], feature: str) -> int:
    levels = [
        r.record.feature_level for r in records if isinstance(r.record, FeatureLevelRecord) and r.record.name == feature
    ]
    return levels[-1] if levels else 0
