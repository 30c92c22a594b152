"""Walking the batches of one file, in bounded memory, and finding the first that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from metadata_log.batch import CRC_START, HEADER_BYTES, HeaderFields, crc_ok, header_fields, parse_header
from metadata_log.disk import DiskFile
from metadata_log.errors import MalformedData

#: Bytes read at once: a batch of the usual limit fits.
_WINDOW_BYTES: Final = 8 * 1024 * 1024
# Producer id, producer epoch and base sequence are -1 in every metadata batch: 14 bytes 0xff, 43 bytes into the header.
_SIGNATURE: Final = b"\xff" * 14
_SIGNATURE_AT: Final = 43


@dataclass(frozen=True, slots=True)
class BadBatch:
    """Where the walk ended before the file did."""

    position: int
    #: The offset that a batch should have started at.
    offset: int
    #: Epoch of the batch before it.
    epoch: int
    reason: str


class Window:
    """A stretch of a file in memory that moves along with its reader."""

    def __init__(self, file: DiskFile) -> None:
        self._file = file
        self._data = b""
        #: The same, to be cut without copying.
        self.view = memoryview(b"")
        self._start = 0

    def covering(self, position: int, size: int) -> tuple[bytes, int]:
        """A buffer, and the index in it of ``position``. ``size`` bytes follow there unless the file ends before."""
        at = position - self._start
        if not 0 <= at <= len(self._data) - size:
            self._data = self._file.pread(max(_WINDOW_BYTES, size), position)
            self.view = memoryview(self._data)
            self._start = position
            at = 0
        return self._data, at


def scan_batches(
    file: DiskFile, base_offset: int, epoch: int, visit: Callable[[int, HeaderFields, memoryview], None]
) -> BadBatch | None:
    """Call ``visit(position, header fields, bytes)`` for every good batch, in order.

    Returns the first bad one, None at a clean end.

    Good is: CRC right, offsets dense from ``base_offset`` on, epochs never falling below ``epoch`` or the one before.
    """
    size = file.size()
    window = Window(file)
    position = 0
    while position < size:
        try:
            fields, batch = _good_batch(window, position, base_offset, epoch)
        except MalformedData as error:
            return BadBatch(position, base_offset, epoch, str(error))
        visit(position, fields, batch)
        _, batch_bytes, epoch, _, _, _, count = fields
        position += batch_bytes
        base_offset += count
    return None


def _good_batch(window: Window, position: int, base_offset: int, epoch: int) -> tuple[HeaderFields, memoryview]:
    # A log may have a million small batches, and a start waits for all of them: as few calls as can be.
    data, at = window.covering(position, HEADER_BYTES)
    fields = header_fields(data, at)
    found_base, size, found_epoch, crc, _, _, _ = fields
    # These three fields are what the CRC does not cover.
    if found_base != base_offset:
        raise MalformedData(f"base offset {found_base} where {base_offset} is due")
    if found_epoch < epoch:
        raise MalformedData(f"epoch {found_epoch} after epoch {epoch}")
    if at + size > len(data):
        _, at = window.covering(position, size)
    batch = window.view[at : at + size]
    if len(batch) < size:
        raise MalformedData(f"batch of {size} bytes, {len(batch)} there")
    if crc32c(batch[CRC_START:]) != crc:
        raise MalformedData("the CRC does not match")
    return fields, batch


def is_torn(file: DiskFile, bad: BadBatch) -> bool:
    """Whether a bad batch looks like the end of a write that a crash cut short. Else it is corruption.

    No torn write leaves a batch whose CRC holds, at the wrong offset or epoch, and none has a valid batch behind it.
    """
    window = Window(file)
    return not _is_whole(window, bad.position) and not _has_successor(window, file.size(), bad)


def _has_successor(window: Window, size: int, bad: BadBatch) -> bool:
    """Whether a whole batch of a higher offset lies behind the bad one, at whatever distance.

    Its length being in doubt, the bad batch says nothing of where the next one starts: every position is tried.
    """
    position = bad.position + 1
    while position + HEADER_BYTES <= size:
        data, at = window.covering(position, HEADER_BYTES)
        found = data.find(_SIGNATURE, at + _SIGNATURE_AT)
        if found < 0:
            # Go on where a header would no longer fit into what was searched.
            position += len(data) - at - HEADER_BYTES + 1
            continue
        position += found - _SIGNATURE_AT - at
        if _is_whole(window, position, bad.offset + 1):
            return True
        position += 1
    return False


def _is_whole(window: Window, position: int, base_offset_min: int = 0) -> bool:
    try:
        header = parse_header(*window.covering(position, HEADER_BYTES))
    except MalformedData:
        return False
    return header.base_offset >= base_offset_min and crc_ok(*window.covering(position, header.size), header)
