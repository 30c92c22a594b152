"""Contexts: clusters by name, each with the addresses of its controllers and with what says who asks there.

They are in one file of whoever runs the commands, for him alone. A context names files with secrets and holds none.
For a command it is the environment that it stands for, and nothing else of the environment says where and who.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.logins.cluster_variables import (
    CA_VARIABLE,
    CERT_VARIABLE,
    CONTROLLERS_VARIABLE,
    DIRECTORY_VARIABLE,
    INSECURE_VARIABLE,
    KEY_VARIABLE,
    PASSWORD_VARIABLE,
    SECRET_VARIABLE,
    USER_VARIABLE,
)
from quorate.scripts.logins.private_state import CONTEXTS_FILE, read_state, state_file, write_state

CONTEXTS_MAX: Final = 100
_NAME_CHARS: Final = frozenset(string.ascii_letters + string.digits + "._-")
_NAME_CHARS_MAX: Final = 64
_Text = Annotated[str, Field(min_length=1, max_length=4_096)]


class NoSuchContext(QuorateError):
    """A context that was named is not there."""


class KeptContext(BaseModel):
    """One of them. What is None is not said; paths are absolute."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    #: Addresses of controllers, or the directory of a local cluster.
    controllers: _Text | None = None
    directory: _Text | None = None
    #: Files of CAs, of several with commas between them, and of a certificate and its key.
    ca_files: _Text | None = None
    cert_file: _Text | None = None
    key_file: _Text | None = None
    #: The file of a secret or token; or a user with the file of his password.
    secret_file: _Text | None = None
    user: _Text | None = None
    password_file: _Text | None = None
    insecure: bool = False

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not 0 < len(name) <= _NAME_CHARS_MAX or not _NAME_CHARS.issuperset(name):
            raise ValueError(f"it must be letters, digits, dots, dashes and underscores, {_NAME_CHARS_MAX} at most")
        return name

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it stands for."""
        said = {variable: getattr(self, field) for field, variable in _VARIABLES.items()}
        return {variable: str(value) for variable, value in said.items() if value} | (
            {INSECURE_VARIABLE: "1"} if self.insecure else {}
        )


#: Field -> the environment variable that it stands for.
_VARIABLES: Final[Mapping[str, str]] = {
    "controllers": CONTROLLERS_VARIABLE,
    "directory": DIRECTORY_VARIABLE,
    "ca_files": CA_VARIABLE,
    "cert_file": CERT_VARIABLE,
    "key_file": KEY_VARIABLE,
    "secret_file": SECRET_VARIABLE,
    "user": USER_VARIABLE,
    "password_file": PASSWORD_VARIABLE,
}


class KeptContexts(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Name of the one that commands use where nothing else is said.
    current: str | None = None
    contexts: tuple[KeptContext, ...] = Field(default=(), max_length=CONTEXTS_MAX)

    def named(self, name: str) -> KeptContext:
        """The context of this name.

        Raises:
            NoSuchContext: there is none; the sentence says which there are.
        """
        for one in self.contexts:
            if one.name == name:
                return one
        there = ", ".join(one.name for one in self.contexts) or "none"
        raise NoSuchContext(f"there is no context {name[:80]!r}; there are: {there}")


def contexts_file() -> Path:
    """The file that they are in."""
    return state_file(CONTEXTS_FILE)


def read_contexts() -> KeptContexts:
    """All that are kept.

    Raises:
        InvalidSettings: the file cannot be used.
    """
    data = read_state(CONTEXTS_FILE, "the file of contexts")
    if data is None:
        return KeptContexts()
    try:
        return KeptContexts.model_validate_json(data)
    except ValidationError:
        raise InvalidSettings(
            f"{contexts_file()} does not hold what quorate context keeps: remove it, and add them again"
        ) from None


def write_contexts(kept: KeptContexts) -> None:
    """Keep these and no others.

    Raises:
        InvalidSettings: there is no place for them. OSError: the disk failed.
    """
    write_state(CONTEXTS_FILE, "contexts", kept.model_dump_json(exclude_none=True).encode())
