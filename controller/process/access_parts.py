"""The parts of access control, as settings and files say; there is no controller yet, by whose ACLs it will go."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.bearer_tokens import FILE_BYTES_MAX, BearerTokens, InvalidTokens
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import Authentication
from quorate.controller.identity.found_tokens import AllTokens
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.logins import Logins
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_settings import AccessSettings
from quorate.controller.process.settings import ControllerSettings
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import exposure
from quorate.snapshots.image.image import MetadataImage

log = structlog.get_logger()

#: The file of tokens is looked at this often, when somebody asks.
_LOOK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class AccessParts:
    """Of one controller."""

    authentication: Authentication
    #: None: nobody is asked.
    authorizer: Authorizer | None = None
    super_users: frozenset[str] = frozenset()
    #: By which this controller shows the others who it is. None: the shared secret does.
    seals: Seals | None = None
    #: None: nobody logs in.
    logins: Logins | None = None

    def over(self, image: Callable[[], MetadataImage]) -> AccessControl:
        """The access control that goes by the ACLs and credentials of this image."""
        if self.logins is not None:
            self.logins.credentials.follow(image)
        return AccessControl(
            self.authentication,
            authorizer=self.authorizer,
            acls=lambda: image().acls,
            super_users=self.super_users,
            seals=self.seals,
            logins=self.logins,
        )


def access_parts(settings: ControllerSettings, cluster_id: str, shared_secret: bytes | None) -> AccessParts:
    """The parts that the settings ask for. ``shared_secret``: the content of the file that they name.

    Raises:
        InvalidSettings: a file of tokens that cannot be used.
    """
    access = settings.access
    if access.authorizer == "none":
        return AccessParts(SharedSecretAuthentication(shared_secret or None))
    voters = frozenset(voter.id for voter in settings.voters)
    seals = Seals(shared_secret or b"", settings.node_id, voters, _wall_ms)
    logins = _logins(access, shared_secret or b"")
    super_users = frozenset(access.super_users)
    file = TokensFile(access.tokens_file)
    tokens = file if logins is None else AllTokens((file, logins.tokens))
    certificates = CertificateIdentities(cluster_id, PrincipalMapping(access.principal_mapping_rules))
    return AccessParts(
        IdentityAuthentication(tokens, certificates, seals, frozenset(access.proxies)),
        Authorizer(super_users=super_users, is_allowed_without_acl=access.allow_everyone_if_no_acl_found),
        super_users,
        seals,
        logins,
    )


def _logins(access: AccessSettings, secret: bytes) -> Logins | None:
    if not access.login_mechanisms:
        return None
    return Logins(secret, access.login_mechanisms, access.login_lifetime_ms, _wall_ms, secrets.token_urlsafe)


def _wall_ms() -> float:
    return time.time() * 1000


class TokensFile:
    """``FoundTokens`` of a file, which is read again when it has changed: whole, or not at all. None: no tokens."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds.

        Raises:
            InvalidSettings: it cannot be read, others than its owner may use it, or a line is wrong.
        """
        self._path = path
        self._clock = clock
        self._tokens = BearerTokens({})
        self._generation = 0
        self._stamp: tuple[int, ...] | None = None
        self._look_at = clock() + _LOOK_S
        if path is not None:
            self._stamp = _stamp(path)
            self._tokens = _read(path)

    @property
    def generation(self) -> int:
        """See ``FoundTokens``. Looks at the file when that was not done for a second."""
        if self._path is not None and self._clock() >= self._look_at:
            self._look(self._path)
        return self._generation

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``."""
        if self._path is not None and self._clock() >= self._look_at:
            self._look(self._path)
        return self._tokens.find(token)

    def _look(self, path: Path) -> None:
        self._look_at = self._clock() + _LOOK_S
        stamp = _stamp(path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._tokens = _read(path)
        except InvalidSettings as error:
            # The old ones hold: whoever makes a mistake in the file must not shut everybody out.
            log.error("access.tokens_file_refused", error=str(error), kept=len(self._tokens))
            return
        self._generation += 1
        log.info("access.tokens_file_read", tokens=len(self._tokens))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Another one for another content; None: there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: Path) -> BearerTokens:
    try:
        with path.open("rb") as opened:
            if (said := exposure(path, os.fstat(opened.fileno()))) is not None:
                raise InvalidSettings(f"access.tokens_file {path} {said}")
            data = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidSettings(f"access.tokens_file {path} cannot be read: {error.strerror or error}") from error
    if len(data) > FILE_BYTES_MAX:
        raise InvalidSettings(f"access.tokens_file {path} has more than {FILE_BYTES_MAX} bytes")
    try:
        return BearerTokens.parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"access.tokens_file {path} is no UTF-8 text: byte {error.start}") from error
    except InvalidTokens as error:
        raise InvalidSettings(f"access.tokens_file {path}: {error}") from error
