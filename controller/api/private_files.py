"""Files with secrets: for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def exposure(file: Path, status: os.stat_result) -> str | None:
    """The sentence that refuses a file that others may use; None: nobody else may.

    As with the keys of PostgreSQL: for the owner alone; root's may be for a group that this process is in.
    """
    is_lent = status.st_uid == 0 and os.geteuid() != 0
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IRWXO or mode & (stat.S_IWGRP | stat.S_IXGRP if is_lent else stat.S_IRWXG):
        return f"has mode {mode:04o}: it must be for its owner alone: chmod 600 {file}"
    return None
