"""Evidence of a run in the log of a stopped cluster: the leaders elected, and the brokers fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    LeaderChangeMessage,
    LoggedRecord,
)

_FENCE = 1


@dataclass(slots=True)
class LogEvidence:
    """Between two offsets of the log."""

    #: Leaders, in the order of their elections.
    elected: list[int] = field(default_factory=list)
    #: How often each broker was fenced.
    fenced: Counter[int] = field(default_factory=Counter)


def read_evidence(directories: Iterable[Path], first: int, end: int) -> LogEvidence:
    """From ``first`` to ``end``, in the log that goes furthest of those of stopped controllers.

    Raises:
        StorageError, CorruptBatch: none can be read, or one is damaged.
    """
    records = max((list(_records(directory, first)) for directory in directories), key=len)
    evidence = LogEvidence()
    for logged in records:
        record = logged.record
        if logged.offset >= end:
            break
        if isinstance(record, LeaderChangeMessage):
            evidence.elected.append(record.leader_id)
        elif isinstance(record, FenceBrokerRecord):
            evidence.fenced[record.id] += 1
        elif isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == _FENCE:
            evidence.fenced[record.broker_id] += 1
    return evidence


def _records(directory: Path, first: int) -> Iterator[LoggedRecord]:
    for file in find_files(directory):
        if not file.is_checkpoint:
            for batch in iter_batches(file):
                yield from (one for one in iter_records(batch.data) if one.offset >= first)
