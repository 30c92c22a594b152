"""The parts of access control, as settings and files say; there is no controller yet, by whose ACLs it will go."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quorate.controller.api.kept_files import KeptFile, Secrets
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
from quorate.metadata_log.private_files import read_private
from quorate.snapshots.image.image import MetadataImage

_TOKENS_SETTING: Final = "access.tokens_file"


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
    #: Files that are read again when they have changed, by the settings that name them.
    kept: dict[str, KeptFile[Any] | None] = field(default_factory=dict)

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


def access_parts(
    settings: ControllerSettings, cluster_id: str, shared_secrets: Secrets | None, token_secrets: Secrets | None
) -> AccessParts:
    """The parts that the settings ask for. The secrets: those in the files that they name.

    Raises:
        InvalidSettings: a file of tokens that cannot be used.
    """
    access = settings.access
    if access.authorizer == "none":
        return AccessParts(SharedSecretAuthentication(shared_secrets))
    voters = frozenset(voter.id for voter in settings.voters)
    assert shared_secrets is not None, "the settings ask for it with an authorizer"
    seals = Seals(shared_secrets, settings.node_id, voters, _wall_ms)
    logins = _logins(access, shared_secrets, token_secrets)
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
        {_TOKENS_SETTING: file.file},
    )


def _logins(access: AccessSettings, shared_secrets: Secrets, token_secrets: Secrets | None) -> Logins | None:
    if not access.login_mechanisms:
        return None
    mechanisms, lifetime_ms = access.login_mechanisms, access.login_lifetime_ms
    return Logins(shared_secrets, token_secrets, mechanisms, lifetime_ms, _wall_ms, secrets.token_urlsafe)


def _wall_ms() -> float:
    return time.time() * 1000


class TokensFile:
    """``FoundTokens`` of a file, which is read again when it has changed: whole, or not at all. None: no tokens."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds.

        Raises:
            InvalidSettings: it cannot be read, others than its owner may use it, or a line is wrong.
        """
        self.file = None if path is None else KeptFile(path, _TOKENS_SETTING, _read, clock)

    @property
    def generation(self) -> int:
        """See ``FoundTokens``."""
        return 0 if self.file is None else self.file.generation

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``."""
        return None if self.file is None else self.file().find(token)


def _read(path: Path) -> BearerTokens:
    data = read_private(path, _TOKENS_SETTING, FILE_BYTES_MAX)
    try:
        return BearerTokens.parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{_TOKENS_SETTING} {path} is no UTF-8 text: byte {error.start}") from error
    except InvalidTokens as error:
        raise InvalidSettings(f"{_TOKENS_SETTING} {path}: {error}") from error
