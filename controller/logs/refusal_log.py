"""Writes down which requests were refused, to whom and why."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quorate.controller.logs.counted_lines import CountedLines
from quorate.metadata_log.audit.refusal_lines import REFUSED_FILES, Refusal, RefusalLine, read_refusals

MESSAGE_CHARS_MAX: Final = 300
#: Proofs of those who have shown nothing, or nothing good.
_STRANGERS: Final = (None, "anonymous")


class RefusalLog(CountedLines[Refusal, RefusalLine]):
    """Of one controller."""

    def __init__(self, directory: Path) -> None:
        """``directory``: the metadata directory."""
        super().__init__(directory, REFUSED_FILES, ("request.refused", "refusals.not_written"), _of_many_kinds)

    def note(self, refusal: Refusal, request_id: str, message: str, count: int = 1) -> None:
        """Requests were refused."""
        request, principal, address, error, proof = refusal

        def line(time_ms: int) -> RefusalLine:
            said = message[:MESSAGE_CHARS_MAX]
            return RefusalLine(time_ms, count, request, principal, address, request_id, error, said, proof)

        self.count(refusal, count, line, is_strangers=proof in _STRANGERS)

    def newest(self, lines_max: int) -> list[RefusalLine]:
        """The newest lines, oldest first, what waits among them. Blocks.

        Raises:
            OSError: a file is there and cannot be read.
        """
        self.flush()
        return read_refusals(self._metadata_directory, lines_max)


def _of_many_kinds(time_ms: int, times: int) -> RefusalLine:
    return RefusalLine(time_ms, times, None, None, None, None, None, None)
