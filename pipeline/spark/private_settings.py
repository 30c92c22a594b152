"""Spark settings that are nobody else's, such as the secret of a cluster: in a file of their own, never in an argument.

What a process is started with every user of a machine can read.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from quorate.metadata_log.new_files import open_new
from quorate.pipeline.errors import BadSetting

_FILE_BYTES_MAX: Final = 65_536
_SECRET_BYTES: Final = 32

#: Nobody is spoken with who does not show the secret, and what is said is encrypted. In one JVM, which is its own
#: cluster, Spark makes the secret by itself.
AUTHENTICATED: Final = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def write_cluster_settings(file: Path) -> None:
    """Write what takes part in a new cluster: a secret, and that it is asked for. A file that is there is replaced."""
    made = {**AUTHENTICATED, "spark.authenticate.secret": secrets.token_hex(_SECRET_BYTES)}
    with open_new(file) as opened:
        opened.writelines(f"{name} {value}\n".encode() for name, value in made.items())


def read_private_settings(file: Path) -> dict[str, str]:
    """The settings of a file as `spark-submit --properties-file` takes it: a name, a blank and a value a line.

    Raises:
        BadSetting: it cannot be read, others than its owner may, or a line is no setting.
    """
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise BadSetting(f"{file} has mode {mode:04o}: it must be for its owner alone: chmod 600 {file}")
            text = opened.read(_FILE_BYTES_MAX + 1)
        if len(text) > _FILE_BYTES_MAX:
            raise BadSetting(f"{file} holds more than {_FILE_BYTES_MAX} bytes: it is no file of Spark settings")
        lines = [line.strip() for line in text.decode("utf-8").splitlines()]
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadSetting(f"{file} is no file of Spark settings: it is not UTF-8 at byte {error.start}") from error
    return dict(_setting(file, number, line) for number, line in enumerate(lines, 1) if line and line[0] != "#")


def _setting(file: Path, number: int, line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    if not (name.startswith("spark.") and value.strip()):
        # The line itself may be a secret.
        raise BadSetting(f"{file}, line {number}: must be a name that begins with spark., a blank and a value")
    return name, value.strip()
