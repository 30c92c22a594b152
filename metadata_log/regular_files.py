"""Opening files that others have named: a pipe of that name would be waited for, and a device read, for ever."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def open_regular(path: str, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a file, as ``os.open``.

    Raises:
        OSError: as ``os.open``; EISDIR, EINVAL: what has the name is a directory, or a pipe, a socket or a device.
    """
    # Without O_NONBLOCK opening a pipe waits until somebody writes to it; of files it changes nothing.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "is no regular file", path)


def reading(path: str, buffering: int = -1) -> BinaryIO:
    """A file to be read, as ``open``; raises as ``open_regular``."""
    return os.fdopen(open_regular(path, os.O_RDONLY), "rb", buffering=buffering)
