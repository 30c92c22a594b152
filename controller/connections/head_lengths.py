"""The heads of requests among the bytes of a connection, where one comes behind the other: how long each one is.

Where a head ends and the next one begins is what RFC 9112 says of bodies: they have a length, or come in chunks.
Nothing is judged here but length. What is no request the framework refuses, which reads the same bytes.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

HEAD_END: Final = b"\r\n\r\n"
#: Of a request's line and all its headers: the longest token, and four times as much besides.
HEAD_BYTES_MAX: Final = 40_960
_LINE_END: Final = b"\r\n"
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;|$)")
#: Before a request they are none of its head.
_EMPTY_LINES: Final = re.compile(rb"[\r\n]*")
_LENGTH: Final = re.compile(rb"[0-9]{1,19}")


class _Next(Enum):
    """A text that comes next, and ends with certain bytes."""

    HEAD = "head"
    #: The line before a chunk.
    CHUNK_LINE = "chunk line"
    #: Headers behind the last chunk.
    TRAILERS = "trailers"
    #: Nobody knows: this is no request.
    LOST = "lost"


class HeadLengths:
    """Of one connection."""

    def __init__(self) -> None:
        #: Heads that came whole.
        self.whole = 0
        #: Whether a head, or what stands around chunks, is longer than a head may be. What follows is not looked at.
        self.is_too_long = False
        self._next = _Next.HEAD
        #: What there is of it.
        self._text = bytearray()
        #: Bytes that come before it: of a body, or of a chunk and its end.
        self._skipped = 0

    @property
    def is_under_way(self) -> bool:
        """Whether a part of a head has come, and its end has not."""
        return self._next is _Next.HEAD and bool(self._text)

    def take(self, data: bytes) -> int:
        """Look at what came next. Returns how much of it there is before the end of what is too long."""
        at = 0
        while at < len(data) and not self.is_too_long and self._next is not _Next.LOST:
            if self._skipped:
                passed = min(self._skipped, len(data) - at)
                self._skipped -= passed
                at += passed
            else:
                at = self._read(data, at)
        return at if self.is_too_long else len(data)

    def _read(self, data: bytes, at: int) -> int:
        """Go on with a text from there on. Returns where what comes behind it begins."""
        if self._next is _Next.HEAD and not self._text:
            at = _EMPTY_LINES.match(data, at).end()  # type: ignore[union-attr]  # it always matches
        ending = _LINE_END if self._next is _Next.CHUNK_LINE else HEAD_END
        most, known = HEAD_BYTES_MAX + len(ending), len(self._text)
        if not known and (end := data.find(ending, at, at + most)) >= 0:
            self._end(data[at:end])
            return end + len(ending)
        self._text += data[at : at + most - known]
        end = self._text.find(ending, max(0, known - len(ending) + 1))
        if end < 0:
            self.is_too_long = len(self._text) == most
            return at + len(self._text) - known
        text = bytes(self._text[:end])
        self._text.clear()
        self._end(text)
        return at + end + len(ending) - known

    def _end(self, text: bytes) -> None:
        if self._next is _Next.HEAD:
            self.whole += 1
            self._begin_body(text)
        elif self._next is _Next.TRAILERS:
            self._next = _Next.HEAD
        elif (found := _CHUNK_SIZE.match(text)) is None:
            self._next = _Next.LOST
        elif size := int(found[1], 16):
            self._skipped = size + len(_LINE_END)
        else:
            # The line that has just ended: where there are no headers an empty one follows.
            self._next = _Next.TRAILERS
            self._text += _LINE_END

    def _begin_body(self, head: bytes) -> None:
        for line in head.split(_LINE_END)[1:]:
            name, _, value = line.partition(b":")
            name, value = name.lower(), value.strip(b" \t").lower()
            if name == b"transfer-encoding" and value.endswith(b"chunked"):
                self._next = _Next.CHUNK_LINE
            elif name == b"content-length" and _LENGTH.fullmatch(value):
                self._skipped = int(value)
