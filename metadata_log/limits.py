"""Limits of the log, each with its reason. Over one of them is a typed error, never a truncation."""

from __future__ import annotations

from typing import Final

#: Largest batch: the unit of append, CRC, replication and atomicity. Kafka's controller uses the same 8 MiB.
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
#: Largest batch that a reader accepts. A checkpoint or log of Kafka's may have been written under another limit
#: (`message.max.bytes`), and a damaged length must not make us allocate without bound.
BATCH_BYTES_READ_MAX: Final = 64 * 1024 * 1024
#: Highest epoch: an int32 in the header of a batch, and in Kafka's ``quorum-state``.
EPOCH_MAX: Final = (1 << 31) - 1
#: Highest offset, and most bytes of a file, that a peer may speak of. A batch has room for int64: this is half of it,
#: so that what is added to an offset cannot leave that range.
OFFSET_MAX: Final = 1 << 62
#: Records that one user operation may write (Kafka's ``MAX_RECORDS_PER_USER_OP``).
RECORDS_PER_OPERATION_MAX: Final = 10_000
#: Characters of a topic name (Kafka's ``Topic.MAX_NAME_LENGTH``: a directory name with "-<partition>" fits 255).
TOPIC_NAME_CHARS_MAX: Final = 249
#: Bytes of any one string in a record: a string length is an int16 in Kafka's older encodings, and stays so.
STRING_BYTES_MAX: Final = 32_767
#: Slots of one partition: replicas and whatever else its sets mention share one 64-bit mask.
PARTITION_SLOTS_MAX: Final = 64
