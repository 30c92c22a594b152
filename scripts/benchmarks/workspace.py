"""The workspace of a benchmark: a directory of its own that goes away, a scale, a number of runs, and a listener."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.scripts.benchmarks.protection import NOTHING, Protection

#: What the scaled sizes are multiples of.
_PREFIX: Final = "quorate-bench-"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Handed to each benchmark."""

    #: Empty, on a disk, removed afterwards.
    directory: Path
    runs: int
    #: Factor on the amounts of data and work; 1 is what the targets are about.
    scale: float
    #: Whether each process of a cluster writes a profile; it slows everything down.
    profile_directory: Path | None = None
    #: How long a run takes that could take any time; None: as long as the benchmark says.
    seconds: float | None = None
    #: Of a cluster that is filled; None: as the scale says.
    partitions: int | None = None
    #: Of the cluster that is measured.
    protection: Protection = NOTHING

    def scaled(self, amount: int, at_least: int = 1) -> int:
        """An amount of data or work at the scale."""
        return max(at_least, round(amount * self.scale))

    def say(self, message: str) -> None:
        """Progress, for whoever waits."""
        print(message, file=sys.stderr, flush=True)


@contextmanager
def temporary_directory(parent: Path) -> Iterator[Path]:
    """A new directory in ``parent`` that is removed whatever happens."""
    parent.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
