"""The errors between a log and an image."""

from __future__ import annotations

from quorate.metadata_log.errors import QuorateError


class ReplayError(QuorateError):
    """A record that the image cannot take: it names something unknown, or says something impossible.

    Attributes:
        reason: the value and the rule it breaks.
        offset: log offset of the record; None until a caller that knows it says so.
    """

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason if offset is None else f"offset {offset}: {reason}")
        self.reason = reason
        self.offset = offset


class ImageNotAvailable(QuorateError):
    """No image can be made from what lies at a path (for the offset asked for)."""
