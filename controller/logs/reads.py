"""Reads that are answered, as the edge of a node tells of them."""

from __future__ import annotations

from quorate.controller.decisions.origin import Origin
from quorate.controller.logs.read_log import ReadLog


class Reads:
    """Those of one node."""

    def __init__(self, lines: ReadLog | None = None) -> None:
        """None: the node writes nothing down."""
        self._lines = lines

    def note(self, method: str, route: str, origin: Origin) -> None:
        """A read is answered. ``route``: its path, with the names of parameters."""
        if self._lines is not None:
            self._lines.note(f"{method} {route}", origin)
