"""Controllers that serve a metadata feed over real sockets, and fail in the ways that feeds fail.

The feed's own logic is the production's (``controller.feed.feed``); the log below it is a list of batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from crc32c import crc32c

from quorate.controller.api import headers
from quorate.controller.api.errors import error_reply, status_of
from quorate.controller.feed.feed import FeedChunk, MetadataFeed
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.log.log_index import EpochEnd
from tests.default_parts import feed_limits

CLUSTER_ID = "feed-stage"


@dataclass
class ListLog:
    """Batches in order; all of them are committed up to ``high_watermark``."""

    batches: list[bytes] = field(default_factory=list)
    log_start_offset: int = 0
    start_epoch: int = 0
    high_watermark: int = 0
    is_authoritative: bool = True

    @property
    def log_end_offset(self) -> int:
        return parse_header(self.batches[-1]).end_offset if self.batches else self.log_start_offset

    def epoch_at(self, offset: int) -> int | None:
        if offset == self.log_start_offset:
            return self.start_epoch
        ends = {parse_header(batch).end_offset: parse_header(batch).epoch for batch in self.batches}
        return ends.get(offset)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        found = EpochEnd(self.start_epoch, self.log_start_offset)
        for batch in self.batches:
            header = parse_header(batch)
            if header.epoch <= epoch:
                found = EpochEnd(header.epoch, header.end_offset)
        return found

    def bytes_from(self, offset: int) -> int:
        headers_ = [(parse_header(batch).end_offset, len(batch)) for batch in self.batches]
        return sum(size for end, size in headers_ if offset < end <= self.high_watermark)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        taken: list[bytes] = []
        is_cut = False
        for batch in self.batches:
            header = parse_header(batch)
            if header.end_offset <= offset or header.end_offset > self.high_watermark:
                continue
            if taken and sum(map(len, taken)) + len(batch) > max_bytes:
                is_cut = True
                break
            taken.append(batch)
        last = parse_header(taken[-1])
        return FeedChunk(b"".join(taken), parse_header(taken[0]).base_offset, last.end_offset, last.epoch, is_cut)


class FeedController:
    """One controller: a log, a checkpoint perhaps, and what is wrong with it."""

    def __init__(self, node_id: int, batches: list[bytes] | None = None) -> None:
        self.node_id = node_id
        self.cluster_id = CLUSTER_ID
        self.leader_id: int | None = node_id
        self.log = ListLog(list(batches or ()))
        self.log.high_watermark = self.log.log_end_offset
        self.epoch = max((parse_header(batch).epoch for batch in self.log.batches), default=1)
        self.checkpoint: tuple[CheckpointId, bytes] | None = None
        #: Changes the body of an answer on its way: (path, position or offset, body) -> body.
        self.damage: Callable[[str, int, bytes], bytes] = lambda path, at, body: body
        #: Called before an answer is made, which waits for the future until the controller stops.
        self.before_answer: Callable[[str, int], asyncio.Future[None] | None] = lambda path, at: None
        #: Bytes of the body after which the connection is cut; None = never.
        self.cut_after: int | None = None
        self.requests: list[tuple[str, int]] = []
        self._held: list[asyncio.Future[None]] = []
        self.url = ""
        self._feed = MetadataFeed(self.log, feed_limits())
        self._runner: web.AppRunner | None = None

    def append(self, *batches: bytes) -> None:
        """Commit more batches."""
        self.log.batches.extend(batches)
        self.log.high_watermark = self.log.log_end_offset
        self.epoch = max(self.epoch, parse_header(self.log.batches[-1]).epoch)
        self._feed.moved()

    def drop_prefix(self, checkpoint: CheckpointId, data: bytes) -> None:
        """The log begins at a checkpoint from now on."""
        self.checkpoint = (checkpoint, data)
        self.log.log_start_offset, self.log.start_epoch = checkpoint
        kept = [batch for batch in self.log.batches if parse_header(batch).base_offset >= checkpoint.end_offset]
        self.log.batches[:] = kept
        self._feed.moved()

    async def start(self) -> None:
        """Listen on a free port, or on the one of before."""
        port = int(self.url.rpartition(":")[2]) if self.url else 0
        app = web.Application()
        app.router.add_get("/v1/metadata/batches", self._batches)
        app.router.add_get("/v1/metadata/checkpoint", self._checkpoint)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Gone: connections break, the port refuses."""
        if self._runner is not None:
            for held in self._held:
                if not held.done():
                    held.set_result(None)
            self._feed.close()
            await self._runner.cleanup()
            self._runner = None
            self._feed = MetadataFeed(self.log, feed_limits())

    async def _batches(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        offset = int(query["offset"])
        await self._arrive("batches", offset)
        try:
            wait_ms, max_bytes = int(query["wait_ms"]), int(query["max_bytes"])
            async with self._feed.fetching(offset, int(query["epoch"]), wait_ms, max_bytes) as chunk:
                pass
        except ApiError as error:
            return self._refusal(error)
        extra = {
            headers.LOG_START_OFFSET: str(self.log.log_start_offset),
            headers.BASE_OFFSET: str(chunk.base_offset),
            headers.END_OFFSET: str(chunk.end_offset),
            headers.END_EPOCH: "" if chunk.end_epoch is None else str(chunk.end_epoch),
        }
        return await self._answer(request, self.damage("batches", offset, chunk.data), extra)

    async def _checkpoint(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        position = int(query["position"])
        await self._arrive("checkpoint", position)
        if self.checkpoint is None:
            return self._refusal(ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, "no checkpoint here"))
        checkpoint, data = self.checkpoint
        if "end_offset" in query and (int(query["end_offset"]), int(query["epoch"])) != checkpoint:
            return self._refusal(ApiError(ErrorCode.SNAPSHOT_NOT_FOUND, "that one is gone"))
        piece = data[position : position + int(query["max_bytes"])]
        extra = {
            headers.CHECKPOINT: f"{checkpoint.end_offset}-{checkpoint.epoch}",
            headers.CHECKPOINT_SIZE: str(len(data)),
            headers.CHECKPOINT_POSITION: str(position),
            headers.CRC: f"{crc32c(piece):08x}",
        }
        return await self._answer(request, self.damage("checkpoint", position, piece), extra)

    async def _arrive(self, path: str, at: int) -> None:
        self.requests.append((path, at))
        wait = self.before_answer(path, at)
        if wait is not None:
            self._held.append(wait)
            await wait

    def _headers(self) -> dict[str, str]:
        return {
            headers.NODE: str(self.node_id),
            headers.CLUSTER: self.cluster_id,
            headers.ACTIVE: "" if self.leader_id is None else str(self.leader_id),
            headers.EPOCH: str(self.epoch),
            headers.HIGH_WATERMARK: str(self.log.high_watermark),
        }

    def _refusal(self, error: ApiError) -> web.Response:
        reply = error_reply(error, "request")
        return web.json_response(text=reply.model_dump_json(), status=status_of(error), headers=self._headers())

    async def _answer(self, request: web.Request, body: bytes, extra: dict[str, str]) -> web.StreamResponse:
        answer = web.StreamResponse(headers=self._headers() | extra | {"Content-Length": str(len(body))})
        cut = len(body) if self.cut_after is None else self.cut_after
        try:
            await answer.prepare(request)
            await answer.write(body[:cut])
            if cut < len(body) and request.transport is not None:
                request.transport.abort()
            else:
                await answer.write_eof()
        except ConnectionError:
            pass  # the follower has gone
        return answer


@asynccontextmanager
async def serving(*controllers: FeedController) -> AsyncIterator[None]:
    """The controllers listen for as long as this lasts."""
    try:
        for controller in controllers:
            await controller.start()
        yield
    finally:
        for controller in controllers:
            await controller.stop()


def captured_batches(log_directory: Path) -> list[bytes]:
    """The batches of a captured log, from its first segment on."""
    files = [file for file in find_files(log_directory) if not file.is_checkpoint]
    return [bytes(batch.data) for file in files for batch in iter_batches(file)]


def captured_checkpoint(log_directory: Path) -> tuple[CheckpointId, bytes]:
    """The newest checkpoint of a captured log, as a file's bytes."""
    files = [file for file in find_files(log_directory) if file.is_checkpoint and file.offset]
    newest = max(files, key=lambda file: file.offset or 0)
    return CheckpointId(newest.offset or 0, newest.epoch or 0), newest.path.read_bytes()
