"""The stretches of the log in which nothing became of brokers: whoever asks about brokers need not read them. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

from quorate.snapshots.image.image import MetadataImage

#: Between two of them something became of a broker. The oldest are forgotten, and are read then like what nobody saw.
STRETCHES_MAX: Final = 1024


class QuietStretches:
    """Those between the states that a controller has passed through.

    A record about a broker makes another map of brokers, so between two states that share theirs there is none, or one
    that changed nothing.
    """

    def __init__(self) -> None:
        self._newest: MetadataImage | None = None
        #: First offset and end of each, ascending.
        self._stretches: deque[tuple[int, int]] = deque(maxlen=STRETCHES_MAX)

    def note(self, image: MetadataImage) -> None:
        """The next state. One that does not go forward is that of another log."""
        newest, self._newest = self._newest, image
        if newest is None:
            return
        begin, end = newest.provenance.end_offset, image.provenance.end_offset
        if end < begin:
            self._stretches.clear()
        elif begin < end and image.cluster.brokers is newest.cluster.brokers:
            if self._stretches and self._stretches[-1][1] == begin:
                begin, _ = self._stretches.pop()
            self._stretches.append((begin, end))

    def behind(self, offset: int) -> int:
        """The end of the stretch in which an offset lies; the offset itself where it lies in none."""
        # From the newest back: whoever reads on from where it was is there.
        for begin, end in reversed(self._stretches):
            if begin <= offset:
                return max(offset, end)
        return offset
