"""Lines that say which line was before them: who changes, adds or removes one breaks the chain behind it.

A line is the CRC-32C of what follows in eight hexadecimal digits, a blank, the digest of the line before it, a blank,
and the text. A line's digest is the SHA-256 of the digest before it, a blank and the text. The chain goes through all
files of a directory, whatever their names; what is cut off at its end is noticed by who knows the newest digest only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from crc32c import crc32c

#: Stands for the line before the first.
BEGIN: Final = b"0" * 64
_CRC_CHARS: Final = 8


class ChainedLine(NamedTuple):
    """One line that is whole."""

    #: Digest of the line before it.
    after: bytes
    text: bytes

    @property
    def digest(self) -> bytes:
        """The digest that the next line carries."""
        return hashlib.sha256(b"%s %s" % self).hexdigest().encode()


def encode_chained(texts: Iterable[bytes], after: bytes) -> tuple[bytes, bytes]:
    """Lines that follow the one with this digest, and the digest of the last."""
    entries = []
    for text in texts:
        linked = b"%s %s" % (after, text)
        entries.append(b"%08x %s\n" % (crc32c(linked), linked))
        after = hashlib.sha256(linked).hexdigest().encode()
    return b"".join(entries), after


def decode_entry(entry: bytes) -> ChainedLine | None:
    """The line without its end; None: it is not whole."""
    crc, linked = entry[:_CRC_CHARS], entry[_CRC_CHARS + 1 :]
    after, _, text = linked.partition(b" ")
    is_whole = len(after) == len(BEGIN) and b"%08x" % crc32c(linked) == crc
    return ChainedLine(after, text) if is_whole else None


def decode_chained(data: bytes, position: int = 0) -> Iterator[ChainedLine]:
    """The lines that are whole, from a position on. A line that was begun before it is none."""
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line = decode_entry(data[position:end])
        position = end + 1
        if line is not None:
            yield line


def chain_end(files: Iterable[Path]) -> bytes:
    """The digest that the next line is to carry; of several ends, where the chain is broken, that written last.

    Raises:
        OSError: a file cannot be read.
    """
    ends: dict[bytes, int] = {}
    begins = set()
    for file in files:
        lines = list(decode_chained(file.read_bytes()))
        if lines:
            begins.add(lines[0].after)
            ends[lines[-1].digest] = file.stat().st_mtime_ns
    open_ends = {digest: at for digest, at in ends.items() if digest not in begins} or ends
    return max(open_ends, key=open_ends.__getitem__, default=BEGIN)


def cut_unfinished(file: Path) -> None:
    """Cut off a line that was never finished, which is no part of the chain, so that whole ones can follow.

    Raises:
        OSError: it cannot be changed.
    """
    with file.open("r+b") as opened:
        opened.truncate(opened.read().rfind(b"\n") + 1)


# --- verification ------------------------------------------------------------------------------------


class Break(NamedTuple):
    """The first line of a chain that cannot be what was written."""

    file: Path
    #: From 1 on.
    line: int
    why: str


class ChainVerdict(NamedTuple):
    """The verdict on the files of one chain."""

    files: int
    lines: int
    #: Digest of what was before the oldest line that is kept, and that of the newest line.
    begin: bytes
    end: bytes
    broken: Break | None


class _FileChain(NamedTuple):
    file: Path
    #: None: it holds no line.
    begin: bytes | None
    end: bytes | None
    lines: int
    broken: Break | None


def verify_chain(files: Sequence[Path]) -> ChainVerdict:
    """Whether these files are one chain.

    Raises:
        OSError: a file cannot be read.
    """
    parts = [part for part in map(_verify_file, files) if part.begin is not None or part.broken is not None]
    lines = sum(part.lines for part in parts)
    by_begin = {part.begin: part for part in parts}
    ends = {part.end for part in parts}
    first = [part for part in parts if part.begin not in ends]
    ordered: list[_FileChain] = []
    place = first[0].begin if first else BEGIN
    while (part := by_begin.pop(place, None)) is not None:
        ordered.append(part)
        if part.broken is not None or part.end is None:
            break
        place = part.end
    broken = next((part.broken for part in (*ordered, *parts) if part.broken is not None), None)
    if broken is None and len(ordered) < len(parts):
        left = next(part for part in parts if part not in ordered)
        broken = Break(left.file, 1, "does not follow any line of these files: one was changed, or a file is missing")
    begin = ordered[0].begin if ordered else None
    end = ordered[-1].end if ordered else None
    return ChainVerdict(len(files), lines, begin or BEGIN, end or BEGIN, broken)


def _verify_file(file: Path) -> _FileChain:
    *entries, unfinished = file.read_bytes().split(b"\n")
    begin = after = None
    for number, entry in enumerate(entries, 1):
        line = decode_entry(entry)
        if line is None:
            return _FileChain(file, begin, None, number - 1, Break(file, number, "is not as it was written"))
        if after is not None and line.after != after:
            why = "does not follow the line before it: one was changed, added or removed"
            return _FileChain(file, begin, None, number - 1, Break(file, number, why))
        begin, after = begin or line.after, line.digest
    del unfinished  # The process ended while it wrote: the next line follows the last whole one.
    return _FileChain(file, begin, after, len(entries), None)
