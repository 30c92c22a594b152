"""Old states of a running controller, rebuilt from its checkpoints and its log.

Committed batches never change, so an image that was built once stays right for as long as it is kept.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from quorate.controller.api.errors import EARLIEST_OFFSET
from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads.read_turns import run_in_turn
from quorate.metadata_log.batches.batch import BatchHeader, checked_header, parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import (
    BOOTSTRAP_ID,
    CheckpointId,
    CheckpointInfo,
    checkpoint_name,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk
from quorate.metadata_log.directory.epoch_leader import named_leader
from quorate.metadata_log.errors import ApiError, CorruptCheckpoint, ErrorCode, StorageError
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState

#: Whoever looks at an old state pages through it, and compares it with one or two others.
IMAGES_MAX: Final = 4
#: Of their columns; one image may be larger. A million partitions are some 35 MB.
BYTES_MAX: Final = 256 * 1024 * 1024
#: Read in one turn of the loop, and then replayed on a thread.
_CHUNK_BYTES: Final = 1024 * 1024
_TRANSACTION_TIMES: Final = 4


class Checkpoints(Protocol):
    """The checkpoint files of this node (``metadata_log.checkpoints.checkpoints.CheckpointStore``)."""

    @property
    def infos(self) -> tuple[CheckpointInfo, ...]:
        """The usable checkpoints, ascending, the bootstrap one included."""

    def manifest(self, checkpoint: CheckpointId) -> CheckpointManifest | None:
        """The counts of one's writer, None if it has no manifest. Blocks; may be called on another thread.

        Raises:
            CorruptState: the manifest is damaged.
        """

    def read_chunk(self, checkpoint: CheckpointId, position: int, size_max: int) -> CheckpointChunk:
        """A piece of one. Blocks for the disk; may be called on another thread.

        Raises:
            UnknownCheckpoint, PositionOutOfRange. CorruptCheckpoint: the file has lost its end.
        """


class StretchSize(NamedTuple):
    """The most of the log that one answer is made of, or one batch where that is more.

    What would begin inside of a metadata transaction begins before it, as it all holds from its end on.
    """

    bytes_max: int
    records_max: int

    def require_room_for_transaction(self, begin: int, end: int) -> None:
        """A part that goes back to the begin of a transaction is answered up to ``_TRANSACTION_TIMES`` the size.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, it would be longer.
        """
        most = _TRANSACTION_TIMES * self.records_max
        if end - begin > most:
            what = f"a metadata transaction goes on from offset {begin} to beyond the {most:,} records of one answer"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}: `quorate timeline` tells it, of files too")


class PastStretch(NamedTuple):
    """A part of the committed log, and the state that it follows on."""

    start: ReplayState
    #: Whole batches, one behind the other, in pieces.
    pieces: Sequence[Buffer]
    #: Whether there is more of the log before it that can be read.
    has_earlier: bool

    def batches(self) -> Iterator[Buffer]:
        """One after the other."""
        for piece in self.pieces:
            yield from _batches(memoryview(piece))


class PastReads(Protocol):
    """Old states of a node, and the log between them."""

    async def at(self, moment: Moment) -> MetadataImage:
        """The committed state at a moment.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the log does not reach to it.
        """

    def leader_of(self, epoch: int) -> int | None:
        """The leader of an epoch; None where the log does not tell."""

    async def stretch_before(self, end_offset: int | None, size: StretchSize) -> PastStretch:
        """The last part of the log before an offset; None: of all of it.

        Of the states from which the log goes on, it begins with the earliest that lies within the size; where
        none does, so much before the end. Its last batches may begin behind the end.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, the log does not reach to it, or ``StretchSize`` has no room for what must
                be told at once.
        """


class ReplayStep(NamedTuple):
    """Replay so far."""

    state: ReplayState
    #: Whether the moment was reached: what comes behind it changes nothing.
    is_there: bool
    #: Processor time that it took so far, of the loop's thread and of those that replay.
    seconds: float = 0.0


class PastImages:
    """Builds them off the loop, one at a time, and keeps the last few. Owned by the loop thread."""

    def __init__(
        self,
        log: FeedSource,
        checkpoints: Checkpoints,
        held: Callable[[], Iterable[MetadataImage]],
        wall_ms: Callable[[], float],
    ) -> None:
        """
        Args:
            held: gives committed states that are held in memory anyhow, the one that is now among them.
            wall_ms: milliseconds since 1970; a later time is that of no state yet.
        """
        self._log = log
        self._checkpoints = checkpoints
        self._held = held
        self._wall_ms = wall_ms
        self._kept: OrderedDict[Moment, MetadataImage] = OrderedDict()
        self._lock = asyncio.Lock()
        #: Of the thread, which goes on when nobody waits for it any more.
        self._turn = asyncio.Lock()
        #: For tests: images that had to be built.
        self.built = 0

    async def at(self, moment: Moment) -> MetadataImage:
        """The committed state at a moment.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, this node does not reach back, or not forward, to it; the message says
                how far it does.
        """
        async with self._lock:
            known = self._kept.get(moment)
            if known is not None:
                self._kept.move_to_end(moment)
                return known
            return await self._build(moment)

    def leader_of(self, epoch: int) -> int | None:
        """The leader of an epoch; None where this node's log begins later, or does not name it."""
        start = self._log.end_of_epoch(epoch - 1).end_offset
        if not self._log.log_start_offset <= start < self._log.high_watermark:
            return None
        data = self._log.read_from(start, 1).data
        header = checked_header(memoryview(data), 0)
        return named_leader(header, data) if header.epoch == epoch else None

    async def stretch_before(self, end_offset: int | None, size: StretchSize) -> PastStretch:
        """The last part of the committed log before an offset, as ``PastReads`` has it.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, this node does not reach back, or not forward, to it, or as there.
        """
        log, held_end = self._log, self._log.high_watermark
        end = held_end if end_offset is None else end_offset
        if end > held_end:
            what = f"this controller's committed log ends {Moment(offset=end).shortfall(held_end, 0, 0)}"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
        begins = self._begins()
        begin = self._begin_before(end, size, begins)
        start = await self.at(Moment(offset=begin))
        while (position := start.provenance.end_offset) and log.epoch_at(position) is None:
            # Inside of a batch, where a transaction begins.
            start = await self.at(Moment(offset=log.read_from(position, 1).base_offset))
        if position < begin:
            size.require_room_for_transaction(position, end)
        pieces = []
        while position < end:
            _require_held(log, position)
            chunk = log.read_from(position, _CHUNK_BYTES)
            pieces.append(chunk.data)
            position = chunk.end_offset
            await asyncio.sleep(0)
        return PastStretch(ReplayState(start), pieces, start.provenance.end_offset > min(begins, default=0))

    def _begins(self) -> list[int]:
        """The offsets of all states that need no replay and from which the log goes on."""
        first = self._log.log_start_offset
        ends = [info.id.end_offset for info in self._checkpoints.infos if info.id != BOOTSTRAP_ID]
        return [*([] if first else [0]), *sorted(end for end in ends if end >= first)]

    def _begin_before(self, end: int, size: StretchSize, begins: Sequence[int]) -> int:
        """The begin of the part of the log before an offset."""
        log, first = self._log, self._log.log_start_offset
        if not first < end:
            return end
        most = -size.bytes_max - log.bytes_from(end)
        lowest = bisect_left(range(first, end), most, key=lambda offset: -log.bytes_from(offset)) + first
        lowest = min(max(lowest, end - size.records_max), end - 1)
        near = [begin for begin in begins if lowest <= begin < end]
        # One in memory is as good only where not much is missed for it.
        middle = lowest + (end - lowest) // 2
        near += [held for image in self._held() if lowest <= (held := image.provenance.end_offset) <= middle]
        if near:
            return min(near)
        # The log is replayed up to the first batch that begins within the size, or to the last one.
        batch = log.read_from(lowest, 1)
        begin = batch.end_offset if batch.base_offset < lowest and batch.end_offset < end else batch.base_offset
        return min(max(begin, min(begins, default=0)), end)

    async def _build(self, moment: Moment) -> MetadataImage:
        base = await self._base(moment)
        self.built += 1
        until = await _in_log(self._log, base.provenance.end_offset, moment, self._turn)
        if not base.provenance.end_offset and moment.offset is None:
            self._require_begun(moment, until)
        step = await replayed_to(self._log, base, until, self._turn)
        head = step.state.head.provenance
        reached = head.end_offset, head.epoch, head.log_time_ms
        if moment.lies_beyond(*reached, self._wall_ms()):
            what = f"this controller's committed log ends {moment.shortfall(*reached)}"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, what)
        # A time that nothing is later than may come to more of the log soon.
        if step.is_there and not (moment.time_ms is not None and step.state.end_offset >= self._log.high_watermark):
            self._keep(moment, step.state.stable)
        return step.state.stable

    def _require_begun(self, moment: Moment, until: Moment) -> None:
        """A time or an epoch from before the first record is that of no state; offset 0 is that of the empty one."""
        if self._log.high_watermark > 0:
            first = parse_header(self._log.read_from(0, 1).data)
            if until.is_before(first):
                what = f"this controller's log begins {moment.lead(first)}"
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, what)

    async def _base(self, moment: Moment) -> MetadataImage:
        """The newest state at the moment or before it from which the log goes on."""
        infos = [info for info in self._checkpoints.infos if info.id != BOOTSTRAP_ID and self._is_usable(info, moment)]
        kept = [image for image in (*self._kept.values(), *self._held()) if self._goes_on_from(image, moment)]
        nearest = max(kept, key=lambda image: image.provenance.end_offset, default=None)
        covered = -1 if nearest is None else nearest.provenance.end_offset
        damaged: list[CorruptCheckpoint] = []
        for info in reversed([info for info in infos if info.id.end_offset > covered]):
            try:
                return await run_in_turn(partial(_load, self._checkpoints, info), self._turn)
            except CorruptCheckpoint as error:  # since the log was opened: the next older one is taken
                damaged.append(error)
        if nearest is not None:
            return nearest
        if self._log.log_start_offset > 0:
            raise self._out_of_reach(moment, damaged)
        return EMPTY_IMAGE

    def _is_usable(self, info: CheckpointInfo, moment: Moment) -> bool:
        is_before = moment.reaches(info.id.end_offset, info.id.epoch, info.last_contained_timestamp)
        return is_before and info.id.end_offset >= self._log.log_start_offset

    def _goes_on_from(self, image: MetadataImage, moment: Moment) -> bool:
        covers = image.provenance
        is_before = moment.reaches(covers.end_offset, covers.epoch, covers.log_time_ms)
        is_before = is_before and covers.end_offset >= self._log.log_start_offset
        # The state at an offset may end inside a batch.
        return is_before and (covers.end_offset == 0 or self._log.epoch_at(covers.end_offset) is not None)

    def _out_of_reach(self, moment: Moment, damaged: Sequence[CorruptCheckpoint]) -> ApiError:
        start, ends = self._log.log_start_offset, self._begins()
        reach = f"its earliest checkpoint is the state at offset {min(ends)}" if ends else "it has no checkpoint"
        if damaged:
            reach = "; ".join(map(str, damaged))
        message = f"this controller does not reach back to {moment}: its log begins at offset {start}, and {reach}"
        return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, message, {EARLIEST_OFFSET: min(ends)} if ends else None)

    def _keep(self, moment: Moment, image: MetadataImage) -> None:
        self._kept[moment] = image
        while len(self._kept) > IMAGES_MAX or (len(self._kept) > 1 and self._bytes() > BYTES_MAX):
            self._kept.popitem(last=False)

    def _bytes(self) -> int:
        return sum(image.partitions.nbytes for image in self._kept.values())


async def _in_log(log: FeedSource, start: int, moment: Moment, turn: asyncio.Lock) -> Moment:
    """``Moment.in_log``, of the committed batches from an offset on."""
    if moment.time_ms is None:
        return moment
    end = position = start
    while position < log.high_watermark:
        _require_held(log, position)
        headers = await run_in_turn(partial(_headers, log.read_from(position, _CHUNK_BYTES).data), turn)
        end, position = moment.end_in_time(end, headers), headers[-1].end_offset
    return Moment(offset=end)


def _headers(data: bytes) -> list[BatchHeader]:
    headers, position = [], 0
    while position < len(data):
        headers.append(parse_header(data, position))
        position += headers[-1].size
    return headers


def _require_held(log: FeedSource, position: int) -> None:
    if position < log.log_start_offset:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log begins at {log.log_start_offset} by now")


async def replayed_to(log: FeedSource, base: MetadataImage, moment: Moment, turn: asyncio.Lock) -> ReplayStep:
    """A state carried on to an offset or the end of an epoch, or of what is committed; replay is on a thread.

    ``turn``: held by that thread (``read_turns.run_in_turn``).

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE, retention has overtaken it.
    """
    step = ReplayStep(ReplayState(base), moment.is_reached_at(base.provenance.end_offset))
    while not step.is_there and (position := step.state.end_offset) < log.high_watermark:
        _require_held(log, position)
        begun = time.thread_time()
        chunk = log.read_from(position, _CHUNK_BYTES)
        read = step._replace(seconds=step.seconds + time.thread_time() - begun)
        step = await run_in_turn(partial(_carried_on, read, chunk.data, moment), turn)
    return step


def _carried_on(step: ReplayStep, data: bytes, moment: Moment) -> ReplayStep:
    begun = time.thread_time()
    state, is_there, _ = _replayed(step.state, data, moment)
    return ReplayStep(state, is_there, step.seconds + time.thread_time() - begun)


def _replayed(state: ReplayState, data: bytes, moment: Moment) -> ReplayStep:
    view = memoryview(data)
    start = 0
    while start < len(view):
        header = checked_header(view, start)
        if moment.is_before(header):
            return ReplayStep(state, is_there=True)
        state = state.replay_batch(view, start, below=moment.offset)
        if moment.is_reached_at(header.end_offset):
            return ReplayStep(state, is_there=True)
        start += header.size
    return ReplayStep(state, is_there=False)


def _load(checkpoints: Checkpoints, info: CheckpointInfo) -> MetadataImage:
    """The state in one, whose bytes must be those that were checked when it was written, or the log opened.

    Raises:
        CorruptCheckpoint: they are not, or cannot be read.
    """
    name = checkpoint_name(info.id)
    try:
        data = checkpoints.read_chunk(info.id, 0, info.size).data
    except (OSError, StorageError) as error:
        raise CorruptCheckpoint(name, f"it cannot be read any more: {error}") from error
    if CheckpointInfo.of_bytes(info.id, data, info.last_contained_timestamp) != info:
        raise CorruptCheckpoint(name, "its bytes are not those that were there when the log was opened")
    return read_checkpoint(_batches(memoryview(data)), *info.id)


def _batches(view: memoryview) -> Iterator[Buffer]:
    start = 0
    while start < len(view):
        size = checked_header(view, start).size
        yield view[start : start + size]
        start += size
