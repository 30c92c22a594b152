"""Numbers that a cluster gives out, moved on where records may be lost that gave some of them out.

A leader epoch tells two leaders of one partition apart, a partition epoch two states of its ISR, a producer id two
producers. Brokers compare them with what they remember: a number that comes twice lets one pass for the other. What the
lost records had given out nobody knows, so all go on far above. Broker epochs are offsets: the log is moved on as well.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import ProducerIdsImage
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.table_editor import TableEditor

#: More elections of one partition than records can be lost unnoticed; 2,000 such recoveries fit into 32 bits.
EPOCHS_APART: Final = 1_000_000
#: A million blocks of a thousand ids, as controllers give them out.
PRODUCER_IDS_APART: Final = 1_000_000_000
_ROWS: Final = 65_536
_EPOCH_MAX: Final = (1 << 31) - 1
_PRODUCER_ID_MAX: Final = (1 << 63) - 1


def moved_on(image: MetadataImage) -> MetadataImage:
    """The state, with numbers that nobody can have been given before.

    Raises:
        RecoveryError: numbers have come to their end.
    """
    next_id = (image.producer_ids.next_producer_id or 0) + PRODUCER_IDS_APART
    if next_id > _PRODUCER_ID_MAX:
        raise RecoveryError(f"producer id {next_id} would be above the last one there can be")
    return image._replace(partitions=_later(image.partitions), producer_ids=ProducerIdsImage(next_id))


def _later(table: PartitionTable) -> PartitionTable:
    editor = TableEditor(table)
    for rows in table.held_rows(_ROWS):
        for name in ("leader_epochs", "partition_epochs"):
            highest = int(table.column(rows, name).max(initial=0))
            if highest > _EPOCH_MAX - EPOCHS_APART:
                raise RecoveryError(f"an epoch of a partition, {highest}, is too near to the last one there can be")
            editor.pages.add(rows, name, np.full(len(rows), EPOCHS_APART, np.int32))
    return editor.finish()
