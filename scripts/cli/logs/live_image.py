"""The state of a running controller at a moment, made from its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

from quorate.broker.controllers.feed import FeedForbidden, FeedPosition, FeedUnavailable
from quorate.controller.client.targets import controller_url
from quorate.metadata_log.errors import NotController
from quorate.scripts.cli.logs.live_log import TIMEOUT_MS, LiveLog
from quorate.scripts.cli.logs.log_rights import naming_all_rights
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.places.controllers import find_secret
from quorate.snapshots.checkpoints.loading import now_ms
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage


def live_image(url: str, at: Moment | None, secret_file: Path | None) -> MetadataImage:
    """The committed state of one controller, at a moment or at the end of what it had when it was first asked.

    Raises:
        ImageNotAvailable: what it has does not reach back, or not forward, to the moment.
        NotController: it does not answer. FeedForbidden: it does not let this caller read.
        UntrustworthyAnswer, ReplayError: it answers what cannot be.
        InvalidUrl: the URL names no controller.
    """
    try:
        with naming_all_rights():
            return asyncio.run(_read(controller_url(url), at, find_secret(secret_file)))
    except FeedForbidden:
        raise
    except FeedUnavailable as error:
        raise NotController(None, str(error)) from error


async def _read(url: str, at: Moment | None, secret: bytes | None) -> MetadataImage:
    async with client_of([url], secret, timeout_ms=TIMEOUT_MS) as client:
        return await state_at(LiveLog(client, url), at)


async def state_at(log: LiveLog, at: Moment | None) -> MetadataImage:
    """The committed state of a controller, as of ``live_image``.

    Raises:
        FeedUnavailable: it does not answer. ImageNotAvailable, FeedForbidden, UntrustworthyAnswer, ReplayError: as of
            ``live_image``.
    """
    position = await log.nearest(at)
    # After the last batch that is not later, where the moment is a time.
    state = in_time = await log.load(position)
    async for header, batch in log.batches(position):
        is_time = at is not None and at.time_ms is not None
        if at is not None and not is_time and at.is_before(header):
            return state.stable
        state = state.replay_batch(batch, below=None if at is None else at.offset)
        if at is None or not is_time or header.timestamp <= (at.time_ms or 0):
            in_time = state
        position = FeedPosition(header.end_offset, header.epoch)
    reached = *position, state.head.provenance.log_time_ms
    if at is not None and at.lies_beyond(*reached, now_ms()):
        raise ImageNotAvailable(f"{log.url}: its committed log ends {at.shortfall(*reached)}")
    return in_time.stable
