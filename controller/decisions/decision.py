"""The result of a ``decide`` function: the records that make its decision true, and the answer to the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from quorate.metadata_log.batches.runs import BatchItem
from quorate.snapshots.image.image import MetadataImage

Reply_co = TypeVar("Reply_co", covariant=True)

#: One slice of a pass over many partitions: given the head as the slices before it have left it, its records.
Slice = Callable[[MetadataImage], Sequence[BatchItem]]


@dataclass(frozen=True, slots=True)
class Decision(Generic[Reply_co]):
    """Records and reply of one operation. Nothing has changed yet: replay of the records is what changes.

    A run of mass records counts as one item, and may be empty.
    """

    records: Sequence[BatchItem]
    #: To be given once the records are committed.
    reply: Reply_co
    #: All records take effect together or not at all. A pass that is not atomic may be cut between any two records.
    is_atomic: bool = True
    #: A duty of the controller's own (cleaning up after a broker), which the limits for user requests do not bind.
    is_internal: bool = False
    #: Where nothing is written, the reply says how things are, and is given by a leader that a majority has confirmed
    #: since: see ``controller.engine.findings``. False for what is told to a broker that stays what it is, a thousand
    #: times a second: it acknowledges no change, a leader that was deposed says it until it knows (within a second),
    #: and what the broker acts on, its fencing and its leaderships, reaches it through the log. Most of these never
    #: become a decision: ``Operations.broker_heartbeat_at_once`` and ``repeated_heartbeat`` answer them before the
    #: queue.
    is_finding: bool = True
    #: Instead of records: a pass too large for one turn of the loop. Each slice is decided when its turn comes, on what
    #: the head is then; nothing else is decided from the first one to the last.
    slices: Sequence[Slice] = ()
    #: Of a pass: the only broker whose standing it changes, so that the others' heartbeats need not wait for its end;
    #: None: it may change any broker's.
    changed_broker: int | None = None

    @property
    def has_records(self) -> bool:
        """Whether anything is written."""
        return bool(self.records or self.slices)
