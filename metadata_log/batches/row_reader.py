"""Data records one after another, up to one that may begin a run: what small batches are read with."""

from __future__ import annotations

from typing import Final

from quorate.metadata_log.batches.batch import data_head, read_frame
from quorate.metadata_log.batches.run_layout import RUN_CLASSES
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.codec import decode_value_at

#: The bits of lengths that have two bytes at most and are not negative.
_USUAL_LENGTHS: Final = (1 << 14) - 2


def read_rows(
    buf: bytes, pos: int, end: int, delta: int, last_run_delta: int, found: list[BatchItem]
) -> tuple[int, int]:
    """Append the records from ``pos`` on to ``found``; where the next one begins, and its offset delta.

    Stops at ``end``, or at a mass record whose offset delta is at most ``last_run_delta``.

    Args:
        delta: the offset delta that is due for the first record.

    Raises:
        MalformedData, UnsupportedRecord: as ``metadata_log.batches.columns.decode_batch``.
    """
    while pos < end:
        # Nearly all records are framed the same way, and that is read in place: a call costs as much as the reading.
        head = data_head(delta)
        try:
            length, at = buf[pos], pos + 1
            if length > 127:
                length += (buf[at] << 7) - 128
                at += 1
            value_start = at + len(head) + 1
            size = buf[value_start - 1]
            if size > 127:
                size += (buf[value_start] << 7) - 128
                value_start += 1
            value_end = value_start + (size >> 1)
            is_usual = (
                at + (length >> 1) == value_end + 1 <= end
                and buf.startswith(head, at)
                and buf[value_end] == 0
                # An odd length is negative, and from 2^14 on there is a third byte.
                and not (length | size) & ~_USUAL_LENGTHS
            )
        except IndexError:
            is_usual, value_start, value_end = False, pos, pos
        if not is_usual:
            value_start, value_end = _any_value(buf, pos, end, delta)
        if delta <= last_run_delta and buf[value_start + 1] in RUN_CLASSES:
            break
        found.append(decode_value_at(buf, value_start, value_end))
        pos = value_end + 1
        delta += 1
    return pos, delta


def _any_value(buf: bytes, pos: int, end: int, delta: int) -> tuple[int, int]:
    """Start and end of the value of a record, however it is framed."""
    found_delta, _, _, value_start, value_end = read_frame(buf, pos, end)
    if found_delta != delta:
        raise MalformedData(f"offset delta {found_delta} where {delta} is due")
    return value_start, value_end
