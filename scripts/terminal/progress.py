"""Progress of long work: a bar over bytes on a terminal; nowhere else anything is drawn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from quorate.scripts.terminal.screen import Screen


@contextmanager
def bytes_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Draw a bar until the block ends; what is given is called with how many more of ``total`` bytes are done."""
    console = Screen(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield functools.partial(progress.advance, progress.add_task(title, total=total))
