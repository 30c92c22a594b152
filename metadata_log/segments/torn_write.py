"""Torn writes: the remains of the last write to a segment after a crash, and how they are told from damage.

A write that was not synced when the machine lost its power may be there up to any byte; or, as the kernel writes pages
back in an order of its own, any of its pages may be there and any not. A page that never came is zeros from where the
log ended before, for a segment only grows. No rot looks so: to turn a page of a log into zeros takes more than a bit.
"""

from __future__ import annotations

import struct
from typing import Final

from quorate.metadata_log.batches.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, crc_ok, parse_header
from quorate.metadata_log.disk import DiskFile
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.segments.segment_scan import BadBatch, Window

# Producer id, producer epoch and base sequence are -1 in every metadata batch: 14 bytes 0xff, 43 bytes into the header.
_SIGNATURE: Final = b"\xff" * 14
_SIGNATURE_AT: Final = 43
#: What the kernel writes back as one. A disk that tears a page leaves something that counts as damage.
_PAGE: Final = 4096
_OFFSET: Final = struct.Struct(">q")
#: Where a batch says that it is one: a byte that is not zero.
_MAGIC_AT: Final = 16


def is_torn(file: DiskFile, bad: BadBatch) -> bool:
    """Whether a bad batch looks like the end of a write that a crash cut short. Else it is corruption.

    No torn write leaves a batch whose CRC holds, at the wrong offset or epoch, and none has a valid batch behind it.
    """
    window = Window(file)
    return not _is_whole(window, bad.position) and not _has_successor(window, file.size(), bad)


def _has_successor(window: Window, end: int, bad: BadBatch) -> bool:
    """Whether a whole batch of a higher offset lies behind the bad one, its header before ``end``.

    Its length being in doubt, the bad batch says nothing of where the next one starts: every position is tried.
    """
    position = bad.position + 1
    while position + HEADER_BYTES <= end:
        data, at = window.covering(position, HEADER_BYTES)
        found = data.find(_SIGNATURE, at + _SIGNATURE_AT)
        if found < 0:
            # Go on where a header would no longer fit into what was searched.
            position += len(data) - at - HEADER_BYTES + 1
            continue
        position += found - _SIGNATURE_AT - at
        if position + HEADER_BYTES <= end and _is_whole(window, position, bad.offset + 1):
            return True
        position += 1
    return False


def _is_whole(window: Window, position: int, base_offset_min: int = 0) -> bool:
    try:
        header = parse_header(*window.covering(position, HEADER_BYTES))
    except MalformedData:
        return False
    return header.base_offset >= base_offset_min and crc_ok(*window.covering(position, header.size), header)


def lacks_pages(file: DiskFile, bad: BadBatch) -> bool:
    """Whether a bad batch is one because a page of it never came to the disk, though later ones may have.

    Either it begins with what is left of a page, all zeros where more than one bit is due; or a page within it is
    zeros. Then nothing of it was ever synced, nor of what is behind it, if it lies above the mark. A flipped bit in a
    sound log does not look so.
    """
    window = Window(file)
    page_end = (bad.position // _PAGE + 1) * _PAGE
    rest = page_end - bad.position
    if not any(_bytes(window, bad.position, rest)) and _bits_due(bad.offset, rest) > 1:
        return True
    if rest < HEADER_BYTES and _is_missing(window, page_end):
        return True
    try:
        header = parse_header(*window.covering(bad.position, HEADER_BYTES))
    except MalformedData:
        return False
    pages = range(page_end, bad.position + header.size, _PAGE)
    missing = next((page for page in pages if _is_missing(window, page)), None)
    # A batch between would be the true successor: then it is the length that is wrong.
    return missing is not None and not _has_successor(window, missing, bad)


def _bits_due(offset: int, size: int) -> int:
    """The least number of bits that are set in the first ``size`` bytes of a batch at ``offset``."""
    bits = int.from_bytes(_OFFSET.pack(offset)[:size]).bit_count()
    return bits + (size >= LOG_OVERHEAD_BYTES) + (size > _MAGIC_AT)


def _is_missing(window: Window, page: int) -> bool:
    return _bytes(window, page, _PAGE) == bytes(_PAGE)


def _bytes(window: Window, position: int, size: int) -> bytes:
    data, at = window.covering(position, size)
    return data[at : at + size]
