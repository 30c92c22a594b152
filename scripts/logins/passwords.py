"""Passwords of commands: from a person, from a private file, never from an argument."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import read_private

PASSWORD_BYTES_MAX: Final = 4_096

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        help="File whose first line is the password, for its owner alone (mode 600). Without it the password is asked "
        "for, without echo, or read from the first line of standard input where that is no terminal.",
        show_default=False,
    ),
]


def read_password(file: Path, setting: str) -> str:
    """The first line of the private file that a setting names.

    Raises:
        InvalidSettings: the file cannot be used. typer.BadParameter: the line is no password.
    """
    line = read_private(file, setting, PASSWORD_BYTES_MAX + 2).partition(b"\n")[0].rstrip(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"the first line of {file} is no UTF-8", param_hint=setting) from None


def ask_password(name: str, file: Path | None, *, is_new: bool) -> str:
    """The password of a user: from a file, or a person who is asked without echo, or the first line of standard input.

    ``is_new``: a person says it twice.

    Raises:
        typer.BadParameter: there is none, in words that do not repeat it.
    """
    if file is None and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if is_new and getpass.getpass("Once more: ") != password:
            raise typer.BadParameter("these were two different passwords", param_hint="password")
    else:
        password = _first_line(file)
    if not password:
        raise typer.BadParameter("it is empty", param_hint="password")
    return password


def _first_line(file: Path | None) -> str:
    if file is not None:
        try:
            return read_password(file, "--password-file")
        except InvalidSettings as error:
            raise typer.BadParameter(str(error), param_hint="--password-file") from None
    try:
        line = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX + 2)
        password = line.rstrip(b"\r\n")
        if len(password) > PASSWORD_BYTES_MAX:
            raise typer.BadParameter(f"it has more than {PASSWORD_BYTES_MAX} bytes", param_hint="password")
        return password.decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("it is no UTF-8", param_hint="password") from None
