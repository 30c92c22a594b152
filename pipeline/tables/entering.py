"""Moves a directory that was written beside its place into it: synced, whole, by one rename."""

from __future__ import annotations

import os
from pathlib import Path


def enter(written: Path, target: Path) -> None:
    """Give a directory its name, after all in it is on the disk; ``target`` is not there, and has the same parent."""
    for directory, _, files in os.walk(written, topdown=False):
        for name in files:
            _sync(Path(directory, name))
        _sync(Path(directory))
    written.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
