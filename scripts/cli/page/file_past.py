"""Old states of files that nobody writes to, and the log between them: what a controller tells of its own."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from functools import partial
from math import inf
from pathlib import Path
from sys import maxsize
from typing import Final

from quorate.controller.reads.answer_turns import AnswerTurns
from quorate.controller.reads.past import PastStretch, StretchSize
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.directory.epoch_leader import leader_in_files
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.stretches import LogStretch, stretches_of
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.incidents.giving_up import Look, looked_at

#: Whoever drags a slider comes back to where he was.
_IMAGES_MAX: Final = 4


class FilePast:
    """``controller.reads.past.PastReads`` of files. Owned by the loop thread; one answer is read at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: OrderedDict[Moment, MetadataImage] = OrderedDict()
        self._leaders: dict[int, int | None] = {}
        self._turns = AnswerTurns()

    async def at(self, moment: Moment) -> MetadataImage:
        """The state at a moment.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the files do not reach to it. StorageError, ReplayError: they are damaged.
        """
        image = self._kept.get(moment)
        if image is None:
            image = await self._turns.run(inf, lambda _: self._kept.get(moment) or self._load(moment))
        self._kept[moment] = image
        self._kept.move_to_end(moment)
        while len(self._kept) > _IMAGES_MAX:
            self._kept.popitem(last=False)
        return image

    def leader_of(self, epoch: int) -> int | None:
        """The leader of an epoch; None where the files do not tell."""
        if epoch not in self._leaders:
            self._leaders[epoch] = leader_in_files(self._path, epoch)
        return self._leaders[epoch]

    async def stretch_before(self, end_offset: int | None, size: StretchSize) -> PastStretch:
        """The last part of the log before an offset, as ``PastReads`` has it.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the files do not reach to it, or as there.
            StorageError, ReplayError: they are damaged.
        """
        found = await self._turns.run(inf, partial(self._stretch, end_offset, size))
        # Not that of a state: the log may end inside of a transaction.
        held_end = parse_header(found.pieces[-1]).end_offset if found.pieces else found.start.end_offset
        if end_offset is not None and end_offset > held_end:
            what = f"the log ends {Moment(offset=end_offset).shortfall(held_end, 0, 0)}"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
        return found

    def _load(self, moment: Moment) -> MetadataImage:
        try:
            return load_image(self._path, moment)
        except ImageNotAvailable as error:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error

    def _stretch(self, end_offset: int | None, size: StretchSize, check: Look) -> PastStretch:
        below = maxsize if end_offset is None else end_offset
        try:
            stretches = stretches_of(self._path, below=end_offset)
            found = _last_of(next(stretches), size, below, check)
            while not found.has_earlier and (earlier := next(stretches, None)) is not None:
                held = _size_of(found.pieces, below)
                room = StretchSize(*(most - part for most, part in zip(size, held, strict=True)))
                more = _last_of(earlier, room, below, check)
                needed = _size_of(more.pieces, below)
                if more.has_earlier or needed.bytes_max > room.bytes_max or needed.records_max > room.records_max:
                    found = found._replace(has_earlier=True)
                    break
                found = PastStretch(more.start, (*more.pieces, *found.pieces), has_earlier=False)
            if len(found.pieces) > 1:
                begin = found.start.end_offset
                size.require_room_for_transaction(begin, begin + _size_of(found.pieces, below).records_max)
            return found
        except ImageNotAvailable as error:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error


def _last_of(stretch: LogStretch, most: StretchSize, below: int, check: Look) -> PastStretch:
    """The end of a stretch, one batch at least, and the state that it follows on: never inside of a transaction.

    Args:
        below: what is asked for ends here; the last batch may not, and of it no more is counted.
    """
    start = state = stretch.start
    kept, of_transaction = deque[Buffer](), list[Buffer]()
    bytes_left, records_left = most
    for batch in looked_at(stretch.batches, check):
        kept.append(batch)
        bytes_left -= len(batch)
        records_left -= _records_in(batch, below)
        while min(bytes_left, records_left) < 0 and len(kept) > 1:
            first = kept.popleft()
            bytes_left += len(first)
            records_left += _records_in(first, below)
            state = state.replay_batch(first)
            if state.in_transaction:
                of_transaction.append(first)
            else:
                start = state
                of_transaction.clear()
    return PastStretch(start, (*of_transaction, *kept), has_earlier=start is not stretch.start)


def _size_of(batches: Iterable[Buffer], below: int) -> StretchSize:
    held = list(batches)
    return StretchSize(sum(map(len, held)), sum(_records_in(batch, below) for batch in held))


def _records_in(batch: Buffer, below: int) -> int:
    """The records of a batch below an offset."""
    header = parse_header(batch)
    return min(header.record_count, below - header.base_offset)
