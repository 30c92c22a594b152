"""Frames: a length of four bytes (big-endian), and that many bytes. One of length zero is a ping."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.quorum.errors import ProtocolError

_LENGTH: Final = struct.Struct(">I")
#: What a message has around its batches or its piece of a checkpoint: numbers, and two for each voter.
_AROUND_BATCHES: Final = 64 * 1024
#: The largest frame of a peer: the largest batch that can be appended, alone in its message.
FRAME_BYTES_MAX: Final = BATCH_BYTES_MAX + _AROUND_BATCHES
#: The largest frame of one who has proved nothing yet.
HANDSHAKE_BYTES_MAX: Final = 1024

PING: Final = _LENGTH.pack(0)


#: The content of one. A mass change is a hundred megabytes of them: it is copied no more often than it must be.
Frame = bytes | bytearray

#: A payload from which on it costs less to write it beside its length than to put both together.
_COPIED_MAX: Final = 64 * 1024


def framed(payload: bytes) -> bytes:
    """A frame."""
    return _LENGTH.pack(len(payload)) + payload


def pieces(payload: bytes) -> tuple[bytes, ...]:
    """A frame as what is written one behind the other."""
    return (_LENGTH.pack(len(payload)), payload) if len(payload) > _COPIED_MAX else (framed(payload),)


class FrameReader:
    """Cuts what a socket gives into frames. What comes in pieces is copied to its place in the frame, once."""

    __slots__ = ("_filled", "_held", "_length_begun", "bytes_max", "ended")

    def __init__(self) -> None:
        #: The largest frame that is read; memory is taken for one as soon as its length is known.
        self.bytes_max = HANDSHAKE_BYTES_MAX
        #: The frame of which a part is there, and how much of it.
        self._held: bytearray | None = None
        self._filled = 0
        #: A part of a frame's length.
        self._length_begun = b""
        #: Frames that have come to their end.
        self.ended = 0

    @property
    def under_way(self) -> int:
        """Bytes of a frame that has begun and not ended; 0 where there is none."""
        return len(self._length_begun) if self._held is None else _LENGTH.size + self._filled

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with ``data``. ``bytes_max`` may be changed between two of them.

        What is yielded is whoever's takes it: nothing is written to it any more.

        Raises:
            ProtocolError: a frame announces more than ``bytes_max``. Nothing may be read any more.
        """
        begin = 0
        if self._held is not None:
            begin = self._fill(self._held, data, 0)
            if self._filled < len(self._held):
                return
            frame, self._held = self._held, None
            self.ended += 1
            yield frame
        elif self._length_begun:
            data = self._length_begun + data
            self._length_begun = b""
        size = len(data)
        while (start := begin + _LENGTH.size) <= size:
            (length,) = _LENGTH.unpack_from(data, begin)
            if length > self.bytes_max:
                raise ProtocolError(f"a frame of {length} bytes, {self.bytes_max} are allowed")
            begin = start + length
            if begin > size:
                self._held, self._filled = bytearray(length), 0
                self._fill(self._held, data, start)
                return
            self.ended += 1
            yield data[start:begin]
        self._length_begun = data[begin:]

    def _fill(self, held: bytearray, data: bytes, begin: int) -> int:
        """Copy what belongs to the frame; returns where that ends in ``data``."""
        end = min(len(data), begin + len(held) - self._filled)
        held[self._filled : self._filled + end - begin] = memoryview(data)[begin:end]
        self._filled += end - begin
        return end
