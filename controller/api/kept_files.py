"""Private files that are read again when they have changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import read_secrets

log = structlog.get_logger()

#: Between two looks at a file, in seconds.
_LOOK_S: Final = 1.0
SHARED_SECRET_SETTING: Final = "shared_secret_file"

T = TypeVar("T")


class KeptFile(Generic[T]):
    """The content of a private file, as of now: read again when it has changed, whole or not at all.

    Nobody is shut out by a mistake in it: what was read before holds until it can be used, and ``trouble`` says why.
    """

    def __init__(
        self, path: Path, setting: str, read: Callable[[Path], T], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``setting``: which names it, for the log. ``clock``: seconds.

        Raises:
            InvalidSettings: ``read`` does.
        """
        self._path = path
        self._setting = setting
        self._read = read
        self._clock = clock
        #: Why the changed file is not used; None: it is, or has not changed.
        self.trouble: str | None = None
        self._generation = 0
        self._stamp = _stamp(path)
        self._said = read(path)
        self._look_at = clock() + _LOOK_S

    def __call__(self) -> T:
        """As of now. Looks at the file when that was not done for a second."""
        if self._clock() >= self._look_at:
            self._look()
        return self._said

    @property
    def generation(self) -> int:
        """Another number for another content."""
        self()
        return self._generation

    def _look(self) -> None:
        self._look_at = self._clock() + _LOOK_S
        stamp = _stamp(self._path)
        if stamp == self._stamp and self.trouble is None:
            return
        self._stamp = stamp
        try:
            self._said = self._read(self._path)
        except InvalidSettings as error:
            told, self.trouble = self.trouble, f"what was read before is used on: {error}"
            if self.trouble != told:
                log.error("settings.file_refused", setting=self._setting, error=str(error))
            return
        self.trouble = None
        self._generation += 1
        log.info("settings.file_read", setting=self._setting, file=str(self._path))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Another one for another content; None: there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def secret_file(
    file: Path | None, setting: str = SHARED_SECRET_SETTING, clock: Callable[[], float] = time.monotonic
) -> KeptFile[tuple[bytes, ...]] | None:
    """``Secrets`` of a file, as it is at the moment; None: the setting names none. Raises as ``read_secrets``."""
    return None if file is None else KeptFile(file, setting, lambda path: read_secrets(path, setting), clock)
