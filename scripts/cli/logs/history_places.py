"""The places `quorate history` reads: files, controllers that are named, or those that every command asks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from quorate.metadata_log.errors import NotController
from quorate.scripts.cli.logs.audit_sources import AllSources, AuditSource, FileSource
from quorate.scripts.cli.logs.image_sources import SCHEMES
from quorate.scripts.cli.logs.joined_files import log_of_directories
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import find_controllers
from quorate.scripts.terminal.passed_over import say_passed_over
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.replay.replay_state import ReplayState


class Log(NamedTuple):
    """The earliest state that is known, and the batches that follow it."""

    start: ReplayState
    batches: Iterable[bytes]
    #: Why a controller's log, which may begin earlier, is no part of it.
    missing: Sequence[str] = ()


@contextmanager
def places(
    paths: Sequence[str] | None, controllers: str | None, secret_file: Path | None
) -> Iterator[tuple[Log, AllSources]]:
    """The log that directories, or controllers, have between them, and what all places know about who asked.

    To be read while the context is open. Where there are both, those are read that the first place is one of.

    Args:
        paths: directories and URLs; None: all controllers of the quorum, of which those that are named know.

    Ends the command with its own exit code where a controller does not answer.

    Raises:
        ImageNotAvailable, StorageError: nothing can be read from the files. ApiError: a controller refuses.
    """
    named = list(paths or ())
    directories = [Path(place) for place in named if not place.startswith(SCHEMES)]
    urls = [place for place in named if place.startswith(SCHEMES)]
    addresses: Sequence[str] = ()
    with ExitStack() as stack:
        sources: list[AuditSource] = [FileSource(directory) for directory in directories]
        try:
            if not named:
                addresses = find_controllers(controllers)
                url, log = _log_of_quorum(addresses, secret_file)
                urls = [url]
            elif named[0] in urls:
                log = _log_of_controllers(urls, secret_file)
            else:
                log = _log_of_files(directories)
            for url in urls:
                sources += stack.enter_context(_live_sources(url, addresses or urls, secret_file))
        except NotController as error:
            sys.stderr.write(f"quorate: {error}\n")
            raise typer.Exit(exit_codes.UNREACHABLE) from None
        yield log, AllSources(sources)


def _log_of_files(paths: Sequence[Path]) -> Log:
    if len(paths) > 1:
        joined = log_of_directories(paths)
        say_passed_over(joined.passed_over)
        sys.stderr.writelines(f"quorate: left out: {reason}\n" for reason in joined.left_out)
        return Log(joined.start, joined.batches)
    found: list[PassedOver] = []
    start, batches = batches_from_start(paths[0], found.append)
    say_passed_over(found)
    return Log(start, (batch.data for batch in batches))


# Asking a controller takes libraries that looking into a file must not wait for.


def _live_sources(
    url: str, named: Sequence[str], secret_file: Path | None
) -> AbstractContextManager[Sequence[AuditSource]]:
    from quorate.controller.client.connection import controller_url
    from quorate.scripts.cli.logs.live_audit import live_sources

    return live_sources(url, [controller_url(text) for text in named], secret_file)


def _log_of_controllers(urls: Sequence[str], secret_file: Path | None) -> Log:
    from quorate.scripts.cli.logs.joined_log import log_of_controllers

    log = log_of_controllers(urls, secret_file)
    return Log(log.start, log.batches, log.missing)


def _log_of_quorum(controllers: Sequence[str], secret_file: Path | None) -> tuple[str, Log]:
    from quorate.scripts.cli.logs.joined_log import log_of_quorum

    log = log_of_quorum(controllers, secret_file)
    return log.url, Log(log.start, log.batches, log.missing)
