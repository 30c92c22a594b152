"""The condition under which a request is to be decided, kept with it from the edge to its decision."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from quorate.snapshots.image.image import MetadataImage

#: Raises ``ApiError`` where a state does not meet it.
Precondition = Callable[[MetadataImage], None]

#: The condition of the request that the running task answers; None: it has none.
PRECONDITION: Final[ContextVar[Precondition | None]] = ContextVar("precondition", default=None)
