"""Msgpack bodies that differ from one time to the next in some numbers only: known by their bytes, and not unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

#: Type byte -> how many bytes of a number follow it, big-endian without a sign.
_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SHORT_TEXT: Final = 0xA0
_INT64_WIDTH: Final = 8


class PackedForm:
    """A body of which everything is known but some numbers, which may be any of as many bytes.

    The bytes around a number, its type included, say where it begins and ends, and what all the others mean. So a body
    that has them says what the first one said, but for these numbers; and they are as good as those of the first one:
    none is negative, or beyond 64 bits with a sign.
    """

    __slots__ = ("_end", "_known", "_size", "_start")

    def __init__(self, data: bytes, numbers: Sequence[tuple[int, int]]) -> None:
        """``numbers``: where they are, start and exclusive end, ascending; at least one."""
        self._start, self._end = numbers[0]
        self._size = len(data)
        #: (start, exclusive end, what is there) of all that is known.
        self._known: list[tuple[int, int, bytes]] = []
        at = 0
        for start, end in [*numbers, (self._size, self._size)]:
            # The first byte of eight has the sign of an Int64 in it: it is to stay as it is.
            until = start + 1 if end - start == _INT64_WIDTH else start
            self._known.append((at, until, data[at:until]))
            at = end

    @classmethod
    def of(cls, data: bytes, keys: Sequence[str]) -> Self | None:
        """The form of a body in which keys, in their order, lead to numbers that may be others the next time.

        No text in the body may hold a key with its length before it. None: some key leads to no number of a byte of
        its own or more, or to one that an Int64 cannot hold.
        """
        numbers = []
        at = 0
        for key in keys:
            name = bytes((_SHORT_TEXT + len(key),)) + key.encode("ascii")
            found = data.find(name, at)
            type_at = found + len(name)
            width = _WIDTHS.get(data[type_at], 0) if 0 <= found < len(data) - len(name) else 0
            start, at = type_at + 1, type_at + 1 + width
            if not width or at > len(data) or (width == _INT64_WIDTH and data[start] > 0x7F):
                return None
            numbers.append((start, at))
        return cls(data, numbers)

    def first_number(self, data: bytes) -> int | None:
        """The first of the numbers in a body of this form; None: the body is of another form."""
        if len(data) != self._size:
            return None
        for start, end, known in self._known:
            if data[start:end] != known:
                return None
        return int.from_bytes(data[self._start : self._end], "big")
