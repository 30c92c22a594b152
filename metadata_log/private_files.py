"""Files with secrets: for their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.regular_files import reading

#: 128 bits as hexadecimal digits.
SECRET_CHARS_MIN: Final = 32
#: The old one and the new one.
SECRETS_MAX: Final = 2
#: More than any secrets have.
_SECRETS_BYTES_MAX: Final = 65_536


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


def read_private(file: Path | str, setting: str, bytes_max: int) -> bytes:
    """All of the file that a setting names. What it names may have become a pipe or a device: nobody waits for one.

    Raises:
        InvalidSettings: it cannot be read, is no regular file, has more than ``bytes_max``, or others may use it.
    """
    file = Path(file)
    try:
        with reading(str(file)) as opened:
            if (said := exposure(file, os.fstat(opened.fileno()))) is not None:
                raise InvalidSettings(f"{setting} {file} {said}")
            data = opened.read(bytes_max + 1)
    except OSError as error:
        raise InvalidSettings(f"{setting} {file} cannot be read: {error.strerror or error}") from error
    if len(data) > bytes_max:
        raise InvalidSettings(f"{setting} {file} has more than {bytes_max} bytes")
    return data


def read_secrets(file: Path | str, setting: str = "shared_secret_file") -> tuple[bytes, ...]:
    """The secrets in the file that a setting names, a line each, without line ends; blank lines are none.

    There is one, or two while one takes the place of the other: the first is shown, and each is believed. So a secret
    is exchanged under load: every process is given the old one and the new one, then the new one and the old one, then
    the new one alone, and never do two of them disagree, however long a step takes.

    Raises:
        InvalidSettings: it cannot be read, others than its owner may use it, or a line is too short to be one.
    """
    lines = (line.strip() for line in read_private(file, setting, _SECRETS_BYTES_MAX).splitlines())
    secrets = tuple(line for line in lines if line)
    if not 1 <= len(secrets) <= SECRETS_MAX or not all(map(_is_secret, secrets)):
        wanted = f"one line of at least {SECRET_CHARS_MIN} printable ASCII characters"
        raise InvalidSettings(f"{setting} {file} must hold {wanted}, or two such lines while one replaces the other")
    return secrets


def read_secret(file: Path | str, setting: str = "shared_secret_file") -> bytes:
    """The secret, or the token, that is to be shown: the first one in the file that a setting names.

    Raises:
        InvalidSettings: as ``read_secrets``.
    """
    return read_secrets(file, setting)[0]


def _is_secret(line: bytes) -> bool:
    return len(line) >= SECRET_CHARS_MIN and secret_problem(line) is None
