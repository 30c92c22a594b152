"""Unix sockets: listening at a path, for programs of this machine that one user runs."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError

#: Bytes of a socket's path, without the zero at its end (``sun_path``, the least of the systems' lengths that we meet).
PATH_BYTES_MAX: Final = 107
_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class SocketUnusable(QuorateError):
    """Nobody can listen at a path. Names the path and the rule; nothing was removed that is not one's own."""


def path_problem(path: Path) -> str | None:
    """The reason why no socket can be at a path; None: one can."""
    size = len(os.fsencode(path))
    if size <= PATH_BYTES_MAX:
        return None
    return f"{path} has {size} bytes, and the path of a socket {PATH_BYTES_MAX} at most: name a shorter one"


def checked_path(path: Path) -> Path:
    """The same path.

    Raises:
        ValueError: no socket can be there.
    """
    problem = path_problem(path)
    if problem is not None:
        raise ValueError(problem)
    return path


class LocalSocket:
    """Listens at a path, for the user of this process and root alone, until it is closed."""

    def __init__(self, path: Path, listening: socket.socket) -> None:
        """See ``open``."""
        self._path = path
        self.socket = listening
        self._identity = _identity(path)

    @classmethod
    def open(cls, path: Path, backlog: int) -> LocalSocket:
        """Listen. Its directory is made where it is missing, with mode 0700; a socket that nobody listens at goes.

        Raises:
            SocketUnusable: the path is too long, something listens there already or is no socket, or others could put
                another socket in its place.
        """
        problem = path_problem(path)
        if problem is not None:
            raise SocketUnusable(problem)
        try:
            path.parent.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
            # Two processes that find the same dead socket would each remove the other's new one.
            with _alone(path.parent):
                _remove_dead(path)
                return cls(path, _bound(path, backlog))
        except OSError as error:
            raise SocketUnusable(f"{path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Listen no more. What is at the path by now is removed if it is this socket."""
        self.socket.close()
        try:
            with _alone(self._path.parent):
                if _identity(self._path) == self._identity:
                    self._path.unlink()
        except OSError:
            return  # the directory is gone, or is somebody else's: there is nothing of ours


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """In a directory in which nobody else can put anything, with no other process that takes a socket there."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        status = os.fstat(opened)
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            rule = "others could put another socket in its place: chmod go-w, or name another directory"
            raise SocketUnusable(f"{directory} has mode {stat.S_IMODE(status.st_mode):04o}: {rule}")
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _remove_dead(path: Path) -> None:
    """Make room.

    Raises:
        SocketUnusable: what is there is used, or is no socket.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise SocketUnusable(f"{path} is there and is no socket: remove it, or name another path")
    with socket.socket(socket.AF_UNIX) as asked:
        asked.setblocking(False)
        try:
            asked.connect(str(path))
        except OSError as error:
            # Whoever listens and is busy says EAGAIN.
            if error.errno != errno.ECONNREFUSED:
                raise SocketUnusable(f"{path}: another process may listen there ({error.strerror})") from error
        else:
            raise SocketUnusable(f"{path}: another process listens there")
    path.unlink()


def _bound(path: Path, backlog: int) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    try:
        made.setblocking(False)
        made.bind(str(path))
        # Before it listens nobody gets through, whatever the mode that it was made with.
        path.chmod(_MODE)
        made.listen(backlog)
    except OSError:
        made.close()
        raise
    return made


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
