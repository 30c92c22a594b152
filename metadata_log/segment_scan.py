"""Walking the batches of one file, in bounded memory, and finding the first that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from metadata_log.batch import HEADER_BYTES, BatchHeader, crc_ok, parse_header
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
        self._start = 0

    def covering(self, position: int, size: int) -> tuple[bytes, int]:
        """A buffer, and the index in it of ``position``. ``size`` bytes follow there unless the file ends before."""
        at = position - self._start
        if not 0 <= at <= len(self._data) - size:
            self._data = self._file.pread(max(_WINDOW_BYTES, size), position)
            self._start = position
            at = 0
        return self._data, at


def scan_batches(
    file: DiskFile, base_offset: int, epoch: int, visit: Callable[[int, BatchHeader], None]
) -> BadBatch | None:
    """Call ``visit(position, header)`` for every good batch, in order; return the first bad one, None at a clean end.

    Good is: CRC right, offsets dense from ``base_offset`` on, epochs never falling below ``epoch`` or the one before.
    """
    size = file.size()
    window = Window(file)
    position = 0
    while position < size:
        try:
            header = _good_batch(window, position, base_offset, epoch)
        except MalformedData as error:
            return BadBatch(position, base_offset, epoch, str(error))
        visit(position, header)
        position += header.size
        base_offset = header.end_offset
        epoch = header.epoch
    return None


def _good_batch(window: Window, position: int, base_offset: int, epoch: int) -> BatchHeader:
    data, at = window.covering(position, HEADER_BYTES)
    header = parse_header(data, at)
    # These three fields are what the CRC does not cover.
    if header.base_offset != base_offset:
        raise MalformedData(f"base offset {header.base_offset} where {base_offset} is due")
    if header.epoch < epoch:
        raise MalformedData(f"epoch {header.epoch} after epoch {epoch}")
    if at + header.size > len(data):
        data, at = window.covering(position, header.size)
    if at + header.size > len(data):
        raise MalformedData(f"batch of {header.size} bytes, {len(data) - at} there")
    if not crc_ok(data, at, header):
        raise MalformedData("the CRC does not match")
    return header


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
