"""Files under names that may be foreseen, on the way to their own: never through a link, never into another file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def open_new(path: Path) -> BinaryIO:
    """A new file for its owner alone, to be written to. What has the name goes: it is of a run that was cut short.

    Raises:
        OSError: the directory takes none, or what has the name is not ours to remove, as in a shared /tmp.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "wb")
