"""Making a directory whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorate.metadata_log.disk import RealDisk
from quorate.scripts.cluster.plan import ClusterError


@contextmanager
def all_or_nothing(directory: Path) -> Iterator[Path]:
    """A directory beside ``directory`` that takes its name when the block ends, and is removed when it fails.

    Raises:
        ClusterError: ``directory`` is there already, the one that it would lie in is not, or the disk fails.
    """
    if directory.exists():
        raise ClusterError(f"{directory} is there already, and nothing is ever written over: choose another directory")
    if not directory.parent.is_dir():
        raise ClusterError(f"{directory.parent}: no such directory")
    making = directory.with_name(f".{directory.name}.making-{os.getpid()}")
    try:
        making.mkdir()
        yield making
        making.rename(directory)
        RealDisk().sync_directory(str(directory.parent))
    except OSError as error:
        why = error.strerror or str(error)
        raise ClusterError(f"{directory} cannot be made: {why}; nothing is left of it") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
