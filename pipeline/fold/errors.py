"""The refusals of the fold."""

from __future__ import annotations

from quorate.metadata_log.errors import QuorateError


class FoldRefused(QuorateError):
    """A record that cannot be: it names something unknown, or says something impossible.

    Attributes:
        reason: the value and the rule it breaks. offset: of the record.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"offset {offset}: {reason}")
        self.reason = reason
        self.offset = offset
