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
from quorate.scripts.logins.private_state import read_state, state_file, write_state

_FILE: Final = "contexts.json"
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
            {"QUORATE_INSECURE": "1"} if self.insecure else {}
        )


#: Field -> the environment variable that it stands for.
_VARIABLES: Final[Mapping[str, str]] = {
    "controllers": "QUORATE_CONTROLLERS",
    "directory": "QUORATE_DIR",
    "ca_files": "QUORATE_CA_FILE",
    "cert_file": "QUORATE_CERT_FILE",
    "key_file": "QUORATE_KEY_FILE",
    "secret_file": "QUORATE_SHARED_SECRET_FILE",
    "user": "QUORATE_USER",
    "password_file": "QUORATE_PASSWORD_FILE",
}
#: All variables that say where, how and in whose name to ask: a context takes the place of them together, so that no
#: secret of one cluster is shown to another.
REPLACED_VARIABLES: Final = frozenset(
    {*_VARIABLES.values(), "QUORATE_INSECURE", "QUORATE_MECHANISM", "QUORATE_DELEGATION_TOKEN"}
)


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
    return state_file(_FILE)


def read_contexts() -> KeptContexts:
    """All that are kept.

    Raises:
        InvalidSettings: the file cannot be used.
    """
    data = read_state(_FILE, "the file of contexts")
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
    write_state(_FILE, "contexts", kept.model_dump_json(exclude_none=True).encode())
