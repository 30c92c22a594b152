"""Fetching one checkpoint from one controller, piece by piece.

A piece that comes damaged or not at all is asked for again, at the same position; after ``TRIES_MAX`` times without
progress the controller is given up. Files of one name on two controllers hold the same records but not the same bytes,
so a fetch never goes on with another controller: it begins anew there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quorate.broker.controllers.feed import (
    CheckpointAnswer,
    CheckpointGone,
    ControllerStatus,
    FeedUnavailable,
    FollowedFeed,
    UntrustworthyAnswer,
)
from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.errors import MalformedData

#: Tries for one piece, and starts from the beginning, before a controller is given up.
TRIES_MAX: Final = 3
#: Largest checkpoint that is taken into memory; a million partitions are some 100 MB.
CHECKPOINT_BYTES_MAX: Final = 8 * 1024**3


@dataclass(frozen=True, slots=True)
class FetchedCheckpoint:
    """A checkpoint file in memory. Its pieces are as they were sent; its content is not checked yet."""

    id: CheckpointId
    data: bytearray
    status: ControllerStatus


async def fetch_checkpoint(
    feed: FollowedFeed,
    bytes_max: int,
    accept: Callable[[ControllerStatus], None],
    pause: Callable[[], Awaitable[None]],
    wanted: CheckpointId | None = None,
) -> FetchedCheckpoint:
    """A checkpoint of a controller.

    Args:
        accept: judges what each answer says of its controller, and may raise UntrustworthyAnswer.
        pause: waits a little before a piece is asked for again.
        wanted: which one; None: the newest.

    Raises:
        FeedUnavailable: it has none, or not this one, or stopped giving. UntrustworthyAnswer: pieces stay damaged or
            contradict each other.
    """
    for _ in range(TRIES_MAX):
        fetch = _Fetch(feed, bytes_max, accept, pause, wanted)
        try:
            return await fetch.run()
        except CheckpointGone as error:
            if wanted is not None:
                raise FeedUnavailable(f"{feed.name} has no {checkpoint_name(wanted)} any more: {error}") from error
            if fetch.id is None:
                raise FeedUnavailable(f"{feed.name} has no checkpoint: {error}") from error
    raise FeedUnavailable(f"{feed.name} replaced its checkpoint {TRIES_MAX} times while it was being fetched")


class _Fetch:
    """One pass over one file."""

    def __init__(
        self,
        feed: FollowedFeed,
        bytes_max: int,
        accept: Callable[[ControllerStatus], None],
        pause: Callable[[], Awaitable[None]],
        wanted: CheckpointId | None,
    ) -> None:
        self._feed = feed
        self._bytes_max = bytes_max
        self._accept = accept
        self._pause = pause
        #: Which checkpoint this is; None before the first piece of the newest one, whichever that is.
        self.id = wanted
        self._data = bytearray()
        #: Of the whole file; 0 before the first piece.
        self._size = 0

    async def run(self) -> FetchedCheckpoint:
        while True:
            piece = await self._next_piece()
            self._data += piece.chunk.data
            if len(self._data) == self._size:
                return FetchedCheckpoint(piece.chunk.id, self._data, piece.status)

    async def _next_piece(self) -> CheckpointAnswer:
        """The piece that begins where the data end.

        Raises:
            CheckpointGone, FeedUnavailable, UntrustworthyAnswer: the last of ``TRIES_MAX`` tries.
        """
        for tries_left in range(TRIES_MAX - 1, -1, -1):
            try:
                piece = await self._feed.fetch_checkpoint(self.id, len(self._data), self._bytes_max)
                self._check(piece)
                return piece
            except (FeedUnavailable, UntrustworthyAnswer):
                if not tries_left:
                    raise
            await self._pause()
        raise AssertionError("the last try returns or raises")

    def _check(self, piece: CheckpointAnswer) -> None:
        self._accept(piece.status)
        name, chunk = self._feed.name, piece.chunk
        if not chunk.is_intact:
            raise UntrustworthyAnswer(f"{name}: a checkpoint was damaged on its way at byte {chunk.position}")
        if not self._size:
            if not 0 < piece.size <= CHECKPOINT_BYTES_MAX:
                raise UntrustworthyAnswer(f"{name}: a checkpoint of {piece.size} bytes")
            self._size = piece.size
        if self.id is None:
            self.id = chunk.id
        if chunk.id != self.id or piece.size != self._size or chunk.position != len(self._data):
            raise UntrustworthyAnswer(
                f"{name}: byte {chunk.position} of {checkpoint_name(chunk.id)} ({piece.size} bytes), "
                f"not byte {len(self._data)} of {checkpoint_name(self.id)} ({self._size} bytes)"
            )
        end = chunk.position + len(chunk.data)
        if not chunk.data or end > self._size:
            raise UntrustworthyAnswer(f"{name}: a piece up to byte {end} of a checkpoint of {self._size}")


def checkpoint_contents(fetched: FetchedCheckpoint) -> Iterator[memoryview]:
    """The batches of a fetched file, each checked: CRC, offsets from 0 on, the epoch in its name.

    Raises:
        MalformedData: one of these does not hold.
    """
    view = memoryview(fetched.data)
    start = offset = 0
    while start < len(view):
        header = checked_header(view, start)
        if header.base_offset != offset or header.epoch != fetched.id.epoch:
            raise MalformedData(
                f"at byte {start} a batch of offset {header.base_offset} and epoch {header.epoch}, "
                f"not {offset} and {fetched.id.epoch}"
            )
        yield view[start : start + header.size]
        start += header.size
        offset = header.end_offset
