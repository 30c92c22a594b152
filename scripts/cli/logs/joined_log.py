"""The log that the controllers of a quorum have between them: from the first begin to the newest end.

Each controller cuts its own log by its own checkpoints; what is committed is the same in all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from quorate.broker.controllers.feed import CheckpointGone, FeedForbidden, FeedPosition, FeedUnavailable
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.targets import controller_url
from quorate.metadata_log.errors import NotController
from quorate.scripts.cli.logs.live_log import TIMEOUT_MS, LiveLog
from quorate.scripts.cli.logs.log_rights import naming_all_rights
from quorate.scripts.terminal.asking import client_of
from quorate.scripts.terminal.named_addresses import reason_not_to_ask
from quorate.scripts.terminal.places.controllers import find_secret
from quorate.snapshots.checkpoints.stretches import LogStretch
from quorate.snapshots.errors import ImageNotAvailable

#: Nobody of a quorum that is gone is waited for any longer.
_ABSENT_MS: Final = 2_000.0


class JoinedLog(NamedTuple):
    """The log, from its end backwards; to be read while the context is open that gave it."""

    #: Base URL of the controller whose log begins first.
    url: str
    cluster_id: str
    #: From one checkpoint that any of them has to the next; the last begins with the earliest state that is known.
    stretches: Iterator[LogStretch]
    #: Why the log of a controller is no part of it.
    missing: list[str]


@contextmanager
def log_of_quorum(controllers: Sequence[str], secret_file: Path | None) -> Iterator[JoinedLog]:
    """The log that the controllers of a quorum have between them, all that these know of.

    Raises:
        NotController: none of them answers. FeedForbidden: none lets this caller read.
        UntrustworthyAnswer, ReplayError: one answers what cannot be.
        InvalidUrl: a URL names no controller.
    """
    with _opened(controllers, secret_file, is_for_all=True) as log:
        yield log


@contextmanager
def log_of_controllers(urls: Sequence[str], secret_file: Path | None) -> Iterator[JoinedLog]:
    """The log that these controllers have between them.

    Raises:
        As ``log_of_quorum``. ImageNotAvailable: no log begins at the beginning, or where there is a checkpoint.
    """
    with _opened(urls, secret_file, is_for_all=False) as log:
        yield log


@contextmanager
def _opened(controllers: Sequence[str], secret_file: Path | None, *, is_for_all: bool) -> Iterator[JoinedLog]:
    urls, secret = [controller_url(text) for text in controllers], find_secret(secret_file)
    with naming_all_rights(), asyncio.Runner() as runner:
        client = client_of(urls, secret, timeout_ms=TIMEOUT_MS, absent_ms=_ABSENT_MS)
        try:
            unasked = runner.run(_add_others(client, urls, secret)) if is_for_all else []
            begins, missing = runner.run(_begins([LiveLog(client, url) for url in urls]))
            cluster_id = runner.run(begins[0].log.cluster_id(begins[0].position))
            yield JoinedLog(begins[0].log.url, cluster_id, _stretches(runner, begins), [*missing, *unasked])
        except FeedForbidden:
            raise
        except FeedUnavailable as error:
            raise NotController(None, str(error)) from error
        finally:
            runner.run(client.close())


async def _add_others(client: ControllerClient, urls: list[str], secret: bytes | None) -> list[str]:
    """Add the other controllers of the quorum to the URLs, or none and say why."""
    voters = (await client.describe_quorum()).voters
    told = [voter.http for voter in voters if voter.http and voter.http not in urls]
    unasked = [reason for url in told if (reason := reason_not_to_ask(url, urls, secret)) is not None]
    if not unasked:
        urls += told
    return unasked


class _Begin(NamedTuple):
    log: LiveLog
    position: FeedPosition


async def _begins(logs: Sequence[LiveLog]) -> tuple[list[_Begin], list[str]]:
    """The begin of each log, the one that reaches back furthest first, and why others cannot be read."""
    found = await asyncio.gather(*map(_begin, logs))
    readable = [one for one in found if isinstance(one, _Begin)]
    missing = [one for one in found if not isinstance(one, _Begin)]
    if not readable:
        raise next((one for one in missing if isinstance(one, FeedForbidden)), missing[0])
    return sorted(readable, key=lambda begin: begin.position.offset), list(map(str, missing))


async def _begin(log: LiveLog) -> _Begin | FeedUnavailable | ImageNotAvailable:
    try:
        return _Begin(log, await log.earliest())
    except (FeedUnavailable, ImageNotAvailable) as error:
        return error


def _stretches(runner: asyncio.Runner, begins: Sequence[_Begin]) -> Iterator[LogStretch]:
    first = begins[0]
    later = {position: log for log, begin in begins for position in runner.run(log.later(begin))}
    end: int | None = None
    for position in sorted((one for one in later if one > first.position), reverse=True):
        try:
            stretch = runner.run(_stretch(later[position], position, begins, end))
        except (CheckpointGone, FeedUnavailable):
            continue  # Retention has taken it in the meantime: the next older one is as good.
        yield stretch
        end = position.offset
    yield runner.run(_stretch(first.log, first.position, begins, end))


async def _stretch(log: LiveLog, position: FeedPosition, begins: Sequence[_Begin], end: int | None) -> LogStretch:
    """From a position of a log to an offset, or to the newest end; where it ends before others do, they go on."""
    start = await log.load(position)
    batches: list[bytes] = []
    others = [begin for begin in begins if begin.log is not log]
    for one, begin in (_Begin(log, position), *others):
        if begin.offset <= position.offset and (end is None or position.offset < end):
            async for header, batch in one.batches(position, end):
                batches.append(batch)
                position = FeedPosition(header.end_offset, header.epoch)
    if end is not None and position.offset < end:
        raise FeedUnavailable(f"{log.url}: records {position.offset} to {end - 1} are not to be had")
    return LogStretch(start, batches)
