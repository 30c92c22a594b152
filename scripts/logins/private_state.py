"""Files that commands keep between their runs, for whoever runs them alone, by the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.new_files import open_new
from quorate.metadata_log.private_files import read_private

STATE_VARIABLE: Final = "XDG_STATE_HOME"
#: The contexts are in it: who finds none need not import what reads them.
CONTEXTS_FILE: Final = "contexts.json"
_FOLDER: Final = "quorate"
_FILE_BYTES_MAX: Final = 1024 * 1024


def state_file(name: str) -> Path:
    """The path of one of them.

    Raises:
        RuntimeError: nobody's: he has no home, and nothing is kept.
    """
    named = Path(os.environ.get(STATE_VARIABLE, ""))
    return (named if named.is_absolute() else Path("~/.local/state").expanduser()) / _FOLDER / name


def has_state(name: str) -> bool:
    """Whether one of them is there."""
    try:
        return state_file(name).exists()
    except RuntimeError:
        return False


def read_state(name: str, what: str) -> bytes | None:
    """All of one of them, called ``what``; None: there is none.

    Raises:
        InvalidSettings: it cannot be used, or others may use it.
    """
    return read_private(state_file(name), what, _FILE_BYTES_MAX) if has_state(name) else None


def write_state(name: str, what: str, data: bytes) -> None:
    """Put one in the place of what was there, or leave that as it is.

    Raises:
        InvalidSettings: there is no place for it. OSError: the disk failed.
    """
    try:
        file = state_file(name)
    except RuntimeError:
        raise InvalidSettings(f"there is no home directory to keep {what} in: set {STATE_VARIABLE}") from None
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    try:
        with open_new(part) as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)
        RealDisk().sync_directory(str(file.parent))
    finally:
        part.unlink(missing_ok=True)
