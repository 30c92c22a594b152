"""The places `quorate history` reads: files, controllers that are named, or those that every command asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.scripts.cli.logs.audit_sources import AllSources, AuditSource, FileSource
from quorate.scripts.cli.logs.image_sources import SCHEMES
from quorate.scripts.cli.logs.joined_files import log_of_directories
from quorate.scripts.terminal.passed_over import say_passed_over
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.bytes_read import reading_files
from quorate.scripts.terminal.progress.line import telling
from quorate.snapshots.checkpoints.stretches import LogStretch, stretches_of


class Log(NamedTuple):
    """A log, from its end backwards."""

    #: From one checkpoint to the next; the last begins with the earliest state that is known.
    stretches: Iterator[LogStretch]
    #: Empty where nothing says so.
    cluster_id: str
    #: Why a controller's log, which may begin earlier, is no part of it.
    missing: Sequence[str] = ()
    #: The metadata directory that tells who led an epoch; None: nobody does.
    directory: Path | None = None


@contextmanager
def telling_of_reading(paths: Sequence[str] | None) -> Iterator[None]:
    """While the block lasts, tell how far the log is read: in bytes of files, or for how long controllers give it."""
    named = list(paths or ())
    if named and not named[0].startswith(SCHEMES):
        with reading_files(*(Path(place) for place in named if not place.startswith(SCHEMES))):
            yield
    else:
        whom = ", ".join(named) or "the controllers"
        with telling(lambda seconds: f"reading the log of {whom}, for {duration(seconds)}"):
            yield


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
        if not named:
            addresses = _controllers(controllers)
            url, log = stack.enter_context(_log_of_quorum(addresses, secret_file))
            urls = [url]
        elif named[0] in urls:
            log = stack.enter_context(_log_of_controllers(urls, secret_file))
        else:
            log = _log_of_files(directories)
        for url in urls:
            sources += stack.enter_context(_live_sources(url, addresses or urls, secret_file))
        yield log, AllSources(sources)


def _log_of_files(paths: Sequence[Path]) -> Log:
    cluster_id = next(filter(None, map(_cluster_of, paths)), "")
    if len(paths) > 1:
        joined = log_of_directories(paths)
        say_passed_over(joined.passed_over)
        sys.stderr.writelines(f"quorate: left out: {reason}\n" for reason in joined.left_out)
        return Log(joined.stretches, cluster_id)
    return Log(stretches_of(paths[0], lambda one: say_passed_over([one])), cluster_id, directory=paths[0])


def _cluster_of(path: Path) -> str:
    """The cluster that a metadata directory is of; empty where nothing says so."""
    file = path / META_PROPERTIES_NAME
    return decode_meta_properties(file.read_bytes(), str(file)).cluster_id if file.is_file() else ""


# Asking a controller takes libraries that looking into a file must not wait for.


def _controllers(named: str | None) -> Sequence[str]:
    from quorate.scripts.terminal.places.controllers import find_controllers

    return find_controllers(named)


def _live_sources(
    url: str, named: Sequence[str], secret_file: Path | None
) -> AbstractContextManager[Sequence[AuditSource]]:
    from quorate.controller.client.targets import controller_url
    from quorate.scripts.cli.logs.live_audit import live_sources

    return live_sources(url, [controller_url(text) for text in named], secret_file)


@contextmanager
def _log_of_controllers(urls: Sequence[str], secret_file: Path | None) -> Iterator[Log]:
    from quorate.scripts.cli.logs.joined_log import log_of_controllers

    with log_of_controllers(urls, secret_file) as log:
        yield Log(log.stretches, log.cluster_id, log.missing)


@contextmanager
def _log_of_quorum(controllers: Sequence[str], secret_file: Path | None) -> Iterator[tuple[str, Log]]:
    from quorate.scripts.cli.logs.joined_log import log_of_quorum

    with log_of_quorum(controllers, secret_file) as log:
        yield log.url, Log(log.stretches, log.cluster_id, log.missing)
