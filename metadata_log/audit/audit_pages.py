"""Audit lines of a range of offsets, a page at a time, without reading the files that hold none of them.

In a file offsets only go up, so its end is its last line's, and a line in it is found by halving. Files overlap only
where offsets were decided again: then their lines are merged.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from quorate.metadata_log.audit.audit_lines import AuditLine, audit_file_offset, audit_files, decode_audit_lines

#: Read of a file's end to find its last line, and gone through where halving has come so far: several lines (a
#: principal has 256 characters at most).
_BLOCK_BYTES: Final = 16 * 1024


class AuditPage(NamedTuple):
    """Lines by base offset and epoch."""

    #: Every line of an event that wrote between the start asked for and ``next_offset``.
    lines: list[AuditLine]
    #: Where the next page starts; None: there is none.
    next_offset: int | None
    #: Base offset of the oldest line that is kept at all; None: there is none.
    first_offset: int | None


def read_audit_page(directory: Path, start_offset: int, end_offset: int | None, lines_max: int) -> AuditPage:
    """The first lines of the events that wrote records between two offsets.

    Args:
        directory: as for ``audit_files``.
        start_offset: of the first record.
        end_offset: exclusive; None: everything behind.
        lines_max: about so many at most: lines of the same base offset, of several epochs, stand on one page.
    """
    files = audit_files(directory)
    page: list[AuditLine] = []
    for line in _merged(files, start_offset, end_offset):
        if end_offset is not None and line.base_offset >= end_offset:
            break
        if len(page) >= lines_max and line.base_offset > max(start_offset, page[-1].base_offset):
            return AuditPage(page, line.base_offset, audit_file_offset(files[0]))
        page.append(line)
    return AuditPage(page, None, audit_file_offset(files[0]) if files else None)


def _merged(files: list[Path], start_offset: int, end_offset: int | None) -> Iterator[AuditLine]:
    """Lines that end behind an offset, by base offset and epoch; a file is opened when its lines are due."""
    pending = deque(file for file in files if end_offset is None or audit_file_offset(file) < end_offset)
    heads: list[_FileHead] = []
    while pending or heads:
        while pending and (not heads or audit_file_offset(pending[0]) <= heads[0].base_offset):
            _push(heads, len(pending), _lines_behind(pending.popleft(), start_offset))
        if heads:
            head = heapq.heappop(heads)
            yield head.line
            _push(heads, head.place, head.following)


class _FileHead(NamedTuple):
    """The next line of an open file. Heads are in the order of their lines."""

    base_offset: int
    epoch: int
    #: Of the file: no two heads have the same.
    place: int
    line: AuditLine
    following: Iterator[AuditLine]


def _push(heads: list[_FileHead], place: int, lines: Iterator[AuditLine]) -> None:
    line = next(lines, None)
    if line is not None:
        heapq.heappush(heads, _FileHead(line.base_offset, line.epoch, place, line, lines))


def _lines_behind(file: Path, start_offset: int) -> Iterator[AuditLine]:
    """The lines of a file that end behind an offset."""
    try:
        if _ends_before(file, start_offset):
            return
        data = file.read_bytes()
    except FileNotFoundError:
        return  # It was the oldest one, and is gone by now.
    for line in decode_audit_lines(data, _position_before(data, start_offset)):
        if line.end_offset > start_offset:
            yield line


def _ends_before(file: Path, start_offset: int) -> bool:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _BLOCK_BYTES))
        last = deque(decode_audit_lines(opened.read()), maxlen=1)
    return bool(last) and last[0].end_offset <= start_offset


def _position_before(data: bytes, start_offset: int) -> int:
    """The position of a line before which none ends behind the offset; not far from the first that does."""
    low, high = 0, len(data)
    while high - low > _BLOCK_BYTES:
        middle = data.find(b"\n", (low + high) // 2) + 1
        line = next(decode_audit_lines(data, middle), None) if middle else None
        if line is None or middle >= high:
            break
        if line.end_offset > start_offset:
            high = middle
        else:
            low = middle
    return low
