"""Writes down what was read, and by whom, where settings ask for it."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.decisions.origin import Origin
from quorate.controller.logs.counted_lines import CountedLines
from quorate.metadata_log.audit.read_lines import READ_FILES, AnsweredRead, ReadLine


class ReadLog(CountedLines[AnsweredRead, ReadLine]):
    """Of one controller."""

    def __init__(self, directory: Path) -> None:
        """``directory``: the metadata directory."""
        super().__init__(directory, READ_FILES, ("request.read", "reads.not_written"), _of_many_kinds)

    def note(self, request: str, origin: Origin) -> None:
        """A read is answered. ``request``: method and route."""
        read = AnsweredRead(request, origin.principal, origin.address, origin.proof, origin.proxy)
        self.count(read, 1, lambda time_ms: ReadLine(time_ms, 1, *read, origin.request_id))


def _of_many_kinds(time_ms: int, times: int) -> ReadLine:
    return ReadLine(time_ms, times, None, None, None, None, None, None)
