"""A console for tables, colours and progress whose texts are taken as they are: no markup in names, nothing harmful."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from quorate.scripts.terminal.harmless import shown


class Screen(Console):
    """Use it in place of ``Console``: what is bold or red is a ``Text`` with a style."""

    def __init__(self, **options: Any) -> None:
        """``options``: of ``Console``."""
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """See ``Console``; what moves the cursor is Rich's own, and comes apart from the text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)
