"""Audit lines for the HTTP API: one page at a time, read on another thread."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, Protocol

from quorate.controller.api.audit_models import AuditParameters
from quorate.controller.reads.read_turns import run_in_turn
from quorate.metadata_log.audit.audit_pages import AuditPage


class AuditLines(Protocol):
    """``controller.logs.audit_log.AuditLog``."""

    #: Lines that were never written.
    dropped: int

    def page(self, start_offset: int, end_offset: int | None, lines_max: int) -> AuditPage:
        """The first lines of the events that wrote between two offsets. Blocks for the disk.

        Raises:
            OSError: a file cannot be read.
        """


_NOTHING: Final = AuditPage([], None, None)


class AuditReading:
    """The reader of one node's own account. However many ask, and give up, one thread reads."""

    def __init__(self, lines: AuditLines | None = None) -> None:
        """None: the node writes nothing down."""
        self._lines = lines
        self._turn = asyncio.Lock()

    @property
    def dropped(self) -> int:
        """Lines that were never written."""
        return 0 if self._lines is None else self._lines.dropped

    async def page(self, wanted: AuditParameters) -> AuditPage:
        """The first of the lines that are asked for."""
        if self._lines is None:
            return _NOTHING
        read = partial(self._lines.page, wanted.start_offset, wanted.end_offset, wanted.limit)
        return await run_in_turn(read, self._turn)
