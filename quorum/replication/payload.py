"""The form of an append: one whole batch as its maker built it, with base offset 0 and epoch 0."""

from __future__ import annotations

from quorate.metadata_log.batches.batch import checked_fields, parse_header, place_batch
from quorate.metadata_log.errors import LimitExceeded
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.errors import ProtocolError


def placed_payload(payload: bytes, record_count: int, base_offset: int, epoch: int) -> bytes:
    """The batch ``payload`` of so many records, placed in the log.

    Raises:
        LimitExceeded: it is over the limit. MalformedData, ProtocolError: it is no such batch.
    """
    if len(payload) > BATCH_BYTES_MAX:
        raise LimitExceeded(f"a batch of {len(payload)} bytes is over the limit of {BATCH_BYTES_MAX}")
    _, size, _, _, _, _, count = checked_fields(payload, 0)
    if count != record_count or size != len(payload):
        raise ProtocolError(f"{len(payload)} bytes, {record_count} records: the batch says {parse_header(payload)}")
    return place_batch(payload, base_offset, epoch)
