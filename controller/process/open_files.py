"""The limit of a process's connections: each is an open file, and a process at its limit cannot open its own."""

from __future__ import annotations

import resource
from typing import Final

import structlog

log = structlog.get_logger()

#: What a controller opens besides the connections of its HTTP API: the log, checkpoints, other controllers.
_OTHER_FILES: Final = 512


def places(wanted: int) -> int:
    """For how many connections, of so many wanted, this process may open files.

    It lets itself open as many as it needs, within what the system allows it. Over the limit it could not open a
    segment of its log either, and would end: so many are left for everything else.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    possible = max(allowed - _OTHER_FILES, 1)
    if possible < wanted:
        log.warning("http.fewer_connections", connections_max=wanted, possible=possible, why="limit of open files")
    return possible
