"""The log that the controllers of a quorum have between them: from the first begin to the newest end.

Each controller cuts its own log by its own checkpoints; what is committed is the same in all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from quorate.broker.controllers.feed import FeedForbidden, FeedPosition, FeedUnavailable
from quorate.controller.client.connection import controller_url
from quorate.metadata_log.errors import NotController
from quorate.scripts.cli.logs.live_log import TIMEOUT_MS, LiveLog
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.connecting import find_secret
from quorate.scripts.terminal.named_addresses import reason_not_to_ask
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.replay.replay_state import ReplayState

#: Nobody of a quorum that is gone is waited for any longer.
_ABSENT_MS: Final = 2_000.0


class JoinedLog(NamedTuple):
    """The earliest state that is known, and all committed batches that follow it."""

    #: Base URL of the controller whose log begins first.
    url: str
    start: ReplayState
    batches: list[bytes]
    #: Why the log of a controller is no part of it.
    missing: list[str]


def log_of_quorum(controllers: Sequence[str], secret_file: Path | None) -> JoinedLog:
    """The log that the controllers of a quorum have between them, all that these know of.

    Raises:
        NotController: none of them answers. FeedForbidden: none lets this caller read.
        UntrustworthyAnswer, ReplayError: one answers what cannot be.
        InvalidUrl: a URL names no controller.
    """
    return _joined(controllers, secret_file, is_for_all=True)


def log_of_controllers(urls: Sequence[str], secret_file: Path | None) -> JoinedLog:
    """The log that these controllers have between them.

    Raises:
        As ``log_of_quorum``. ImageNotAvailable: no log begins at the beginning, or where there is a checkpoint.
    """
    return _joined(urls, secret_file, is_for_all=False)


def _joined(controllers: Sequence[str], secret_file: Path | None, *, is_for_all: bool) -> JoinedLog:
    urls = [controller_url(text) for text in controllers]
    try:
        return asyncio.run(_read(urls, find_secret(secret_file), is_for_all=is_for_all))
    except FeedForbidden:
        raise
    except FeedUnavailable as error:
        raise NotController(None, str(error)) from error


async def _read(urls: Sequence[str], secret: bytes | None, *, is_for_all: bool) -> JoinedLog:
    unasked: list[str] = []
    async with client_of(urls, secret, timeout_ms=TIMEOUT_MS, absent_ms=_ABSENT_MS) as client:
        if is_for_all:
            voters = (await client.describe_quorum()).voters
            told = [voter.http for voter in voters if voter.http and voter.http not in urls]
            unasked = [reason for url in told if (reason := reason_not_to_ask(url, urls, secret)) is not None]
            urls = [*urls, *(told if not unasked else ())]
        begins = await asyncio.gather(*(_begin(LiveLog(client, url)) for url in urls))
        readable = [begin for begin in begins if isinstance(begin, _Begin)]
        missing = [begin for begin in begins if not isinstance(begin, _Begin)]
        if not readable:
            raise next((one for one in missing if isinstance(one, FeedForbidden)), missing[0])
        return await _join(sorted(readable, key=lambda begin: begin.position.offset), [*map(str, missing), *unasked])


class _Begin(NamedTuple):
    log: LiveLog
    position: FeedPosition


async def _begin(log: LiveLog) -> _Begin | FeedUnavailable | ImageNotAvailable:
    try:
        return _Begin(log, await log.earliest())
    except (FeedUnavailable, ImageNotAvailable) as error:
        return error


async def _join(begins: Sequence[_Begin], missing: list[str]) -> JoinedLog:
    """The log that begins first; where it ends before others do, they go on from there."""
    first, position = begins[0]
    start = await first.load(position)
    batches: list[bytes] = []
    for log, begin in begins:
        if begin.offset <= position.offset:
            async for header, batch in log.batches(position):
                batches.append(batch)
                position = FeedPosition(header.end_offset, header.epoch)
    return JoinedLog(first.url, start, batches, missing)
