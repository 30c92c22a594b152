"""A job's directory for temporary files: removed at its end, and where it was killed by the next job's start.

A process holds a lock on its directory for as long as it lives, and the system lets go of it however it dies. So a
directory whose lock can be had belongs to nobody any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "quorate-job-"
#: Of one that has no lock yet: nobody else looks at it.
_PREFIX_NEW: Final = ".quorate-job-new-"


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make a directory in `TMPDIR`, and remove it at the end; remove those of jobs that were killed, too."""
    remove_dead(Path(tempfile.gettempdir()))
    new = Path(tempfile.mkdtemp(prefix=_PREFIX_NEW))
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
    scratch = new.with_name(new.name.replace(_PREFIX_NEW, _PREFIX))
    try:
        # A file system that knows no locks: then nobody takes the directory for a dead one's either.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_SH)
        new.rename(scratch)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)
        os.close(lock)


def remove_dead(parent: Path) -> None:
    """Remove what killed jobs of this user have left in a directory; what cannot be removed stays."""
    for directory in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(directory, ignore_errors=True)
            finally:
                os.close(lock)
