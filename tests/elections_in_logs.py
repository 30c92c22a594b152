"""Elections of leaders that were not in sync, as a log holds them: counted from its records, by no code of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord

_RECOVERING = 1


class Election(NamedTuple):
    """A partition that got a leader that may lack data."""

    kind: Literal["last known", "unclean"]
    topic_id: bytes
    partition: int
    leader: int


def doubtful_elections(batches: Iterable[bytes], since: int) -> Counter[Election]:
    """Those from an offset on; ``batches`` are those of the log from its beginning."""
    last_known: dict[tuple[bytes, int], tuple[int, ...]] = {}
    found: Counter[Election] = Counter()
    for batch in batches:
        for logged in iter_records(batch):
            record = logged.record
            if not isinstance(record, PartitionRecord | PartitionChangeRecord):
                continue
            key = (record.topic_id, record.partition_id)
            if isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == _RECOVERING:
                kind: Literal["last known", "unclean"]
                kind = "last known" if last_known.get(key) == (record.leader,) else "unclean"
                if logged.offset >= since:
                    found[Election(kind, *key, record.leader)] += 1
            if isinstance(record, PartitionRecord) or record.last_known_elr is not None:
                last_known[key] = tuple(record.last_known_elr or ())
    return found
