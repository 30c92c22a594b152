"""Files with secrets: for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from quorate.metadata_log.invalid_settings import InvalidSettings

#: 128 bits as hexadecimal digits.
SECRET_CHARS_MIN: Final = 32
#: More than any secret has.
_SECRET_BYTES_MAX: Final = 65_536


def exposure(file: Path, status: os.stat_result) -> str | None:
    """The sentence that refuses a file that others may use; None: nobody else may.

    As with the keys of PostgreSQL: for the owner alone; root's may be for a group that this process is in.
    """
    is_lent = status.st_uid == 0 and os.geteuid() != 0
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IRWXO or mode & (stat.S_IWGRP | stat.S_IXGRP if is_lent else stat.S_IRWXG):
        return f"has mode {mode:04o}: it must be for its owner alone: chmod 600 {file}"
    return None


def secret_problem(secret: bytes) -> str | None:
    """The rule that a secret or token breaks; None: it can be sent. It goes into a header, where a line end would end
    it."""
    if secret != secret.strip():
        return "begins or ends with white space, as a file's last line does: strip() it"
    if not secret:
        return "is empty"
    return None if secret.isascii() and secret.decode("ascii").isprintable() else "must be printable ASCII characters"


def read_secret(file: Path | str, setting: str = "shared_secret_file") -> bytes:
    """The secret, or the token, in the file that a setting names, without the line end.

    Raises:
        InvalidSettings: it cannot be read, others than its owner may use it, or it is too short to be one.
    """
    file = Path(file)
    try:
        with file.open("rb") as opened:
            if (said := exposure(file, os.fstat(opened.fileno()))) is not None:
                raise InvalidSettings(f"{setting} {file} {said}")
            secret = opened.read(_SECRET_BYTES_MAX).strip()
    except OSError as error:
        raise InvalidSettings(f"{setting} {file} cannot be read: {error.strerror or error}") from error
    if len(secret) < SECRET_CHARS_MIN or secret_problem(secret) is not None:
        wanted = f"one line of at least {SECRET_CHARS_MIN} printable ASCII characters"
        raise InvalidSettings(f"{setting} {file} must hold {wanted}")
    return secret
