"""Logins of commands: as the user that the environment names, by a password in a file that nobody else may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.scripts.logins.cluster_variables import (
    MECHANISM_VARIABLE,
    PASSWORD_VARIABLE,
    TOKEN_VARIABLE,
    USER_VARIABLE,
)

if TYPE_CHECKING:
    from quorate.controller.client.login import PasswordLogin


def is_login_named() -> bool:
    """Whether the environment says to log in."""
    return any(os.environ.get(variable) for variable in (USER_VARIABLE, PASSWORD_VARIABLE))


def find_login() -> PasswordLogin | None:
    """The login that the environment names; None: it names none.

    Raises:
        typer.BadParameter: a part of it is missing, or in another form. InvalidSettings: the file cannot be used.
        InvalidLogin: nobody can log in so.
    """
    if not is_login_named():
        return None
    import typer

    from quorate.controller.client.login import DEFAULT_MECHANISM, PasswordLogin
    from quorate.scripts.logins.passwords import read_password

    user, file = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    if not user or not file:
        raise typer.BadParameter(f"{USER_VARIABLE} and {PASSWORD_VARIABLE} belong together: name both, or none")
    is_token = os.environ.get(TOKEN_VARIABLE, "")
    if is_token not in ("", "0", "1"):
        raise typer.BadParameter(f"{TOKEN_VARIABLE} is {is_token[:20]!r}: it must be 1, or not set")
    mechanism = os.environ.get(MECHANISM_VARIABLE) or DEFAULT_MECHANISM
    password = read_password(Path(file), PASSWORD_VARIABLE)
    return PasswordLogin(user, password, mechanism, is_delegation_token=is_token == "1")
