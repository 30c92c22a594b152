"""The refusals of a recovery."""

from __future__ import annotations

from quorate.metadata_log.errors import QuorateError


class RecoveryError(QuorateError):
    """A recovery cannot go on. One sentence that names the rule and what to do; nothing was changed."""
