"""Walking the batches of one file, in bounded memory, and finding the first that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from quorate.metadata_log.batches.batch import CRC_START, HEADER_BYTES, HeaderFields, header_fields
from quorate.metadata_log.disk import DiskFile
from quorate.metadata_log.errors import MalformedData

#: Bytes read at once: a batch of the usual limit fits.
_WINDOW_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BadBatch:
    """The place at which the walk ended before the file did, and the reason."""

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
