"""Logins that are kept between commands: the token of a user, for the controllers at some addresses, until it ends.

They are in one file of whoever runs the commands, for him alone. A token is shown to the addresses that were named when
he logged in, and to no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.logins.private_state import read_state, state_file, write_state

_FILE: Final = "logins.json"
#: Clusters that somebody is logged in to at once; one more takes the place of the oldest.
LOGINS_MAX: Final = 32


class LoginEnded(QuorateError):
    """A login that is kept has ended. Nobody is asked in another name instead."""


class KeptLogin(BaseModel):
    """One of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    #: Base URLs of the controllers that it was named for.
    controllers: tuple[str, ...]
    #: As he logged in: his name without `User:`, or the id of a delegation token.
    user: str
    principal: str
    token: str = Field(repr=False)
    #: Milliseconds since 1970, by this machine's clock.
    ends_at_ms: int = Field(ge=0, le=253_402_300_799_999)

    @property
    def ends_at(self) -> str:
        """The same for people."""
        return datetime.fromtimestamp(self.ends_at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Kept(BaseModel):
    """The file. The newest login is the last."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    logins: tuple[KeptLogin, ...] = Field(max_length=LOGINS_MAX)


def logins_file() -> Path:
    """The file that they are in."""
    return state_file(_FILE)


def find_kept(urls: Collection[str], now_ms: float) -> KeptLogin | None:
    """The login for all of these controllers; None: there is none.

    Args:
        urls: base URLs.
        now_ms: milliseconds since 1970.

    Raises:
        LoginEnded: there was one. InvalidSettings: the file cannot be used.
    """
    found = next((one for one in _read() if set(urls) <= set(one.controllers)), None) if urls else None
    if found is not None and found.ends_at_ms <= now_ms:
        raise LoginEnded(
            f"the login of {found.principal} ended at {found.ends_at}: quorate login {found.user}; or, to ask as"
            " somebody else: quorate logout"
        )
    return found


def keep(login: KeptLogin) -> None:
    """Keep a login in place of those at the same addresses.

    Raises:
        InvalidSettings: the file cannot be used. OSError: the disk failed.
    """
    others = _without(lambda one: bool(set(one.controllers) & set(login.controllers)))
    _write((*others, login)[-LOGINS_MAX:])


def drop(urls: Collection[str] | None) -> list[KeptLogin]:
    """Forget the logins at these controllers; None: at all. Returns them.

    Raises:
        InvalidSettings: the file cannot be used. OSError: the disk failed.
    """
    before = _read()
    left = _without(lambda one: urls is None or bool(set(one.controllers) & set(urls)))
    if len(left) < len(before):
        _write(left)
    return [one for one in before if one not in left]


def _without(goes: Callable[[KeptLogin], bool]) -> list[KeptLogin]:
    return [one for one in _read() if not goes(one)]


def _read() -> Sequence[KeptLogin]:
    data = read_state(_FILE, "the file of kept logins")
    if data is None:
        return ()
    try:
        return _Kept.model_validate_json(data).logins
    except ValidationError:
        raise InvalidSettings(
            f"{logins_file()} does not hold what quorate login keeps: remove it, and log in again"
        ) from None


def _write(logins: Sequence[KeptLogin]) -> None:
    write_state(_FILE, "a login", _Kept(logins=tuple(logins)).model_dump_json().encode())
