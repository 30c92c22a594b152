"""The limit of a process's open files: how many connections fit below it, and what is kept for the disk at it."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from quorate.metadata_log.spare_descriptors import SpareDescriptors

log = structlog.get_logger()

#: What a controller opens besides the connections of its HTTP API: the log, checkpoints, other controllers.
OF_A_CONTROLLER: Final = 512
#: More than the disk work of a controller has open at once.
_SPARE: Final = 16
_SECONDS_BETWEEN_WORDS: Final = 10.0


def places(wanted: int, others: int) -> int:
    """For how many connections, of so many wanted, this process may open files. ``others``: files besides.

    It lets itself open as many as it needs, within what the system allows it. Over the limit it could not open a
    segment of its log either, or a connection of its own: so many are left for everything else.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + others
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    possible = max(allowed - others, 1)
    if possible < wanted:
        log.warning("http.fewer_connections", connections_max=wanted, possible=possible, why="limit of open files")
    return possible


@contextmanager
def spare_descriptors() -> Iterator[SpareDescriptors]:
    """Those that a controller keeps for its disk, as long as it runs. That they were needed is said in its log."""
    said_at = -_SECONDS_BETWEEN_WORDS

    def tell(error: OSError) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - said_at >= _SECONDS_BETWEEN_WORDS:
            said_at = now
            log.error("disk.no_descriptors", why=error.strerror, what="a file was opened with one kept for it")

    spare = SpareDescriptors(_SPARE, tell)
    try:
        yield spare
    finally:
        spare.close()
