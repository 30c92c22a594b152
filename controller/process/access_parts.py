"""The parts of access control, as settings and files say; there is no controller yet, by whose ACLs it will go."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorate.controller.api.kept_files import KeptFile
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import Authentication
from quorate.controller.identity.found_tokens import AllTokens, FoundTokens
from quorate.controller.identity.issuer.keys import JWKS_FILE_SETTING, KeysAddress, KeysFile
from quorate.controller.identity.issuer.tokens import JwtRules, JwtTokens
from quorate.controller.identity.logins import Logins
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.secrets import Secrets
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.identity.tokens_file import TOKENS_SETTING, TokensFile
from quorate.controller.identity.uids import UidIdentities
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.controller.process.access_settings import JwtSettings
from quorate.controller.process.settings import ControllerSettings
from quorate.metadata_log.steady_clock import steady_ms
from quorate.snapshots.image.image import MetadataImage


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
    #: Who asks through the Unix socket.
    uids: UidIdentities | None = None
    #: To be run beside the controller. None: no issuer is asked for its keys.
    issuer_keys: KeysAddress | None = None

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
            uids=self.uids,
        )


def access_parts(
    settings: ControllerSettings, cluster_id: str, shared_secrets: Secrets | None, token_secrets: Secrets | None
) -> AccessParts:
    """The parts that the settings ask for. The secrets: those in the files that they name.

    Raises:
        InvalidSettings: a file of tokens that cannot be used.
    """
    access = settings.access
    uids = UidIdentities(os.geteuid(), dict(access.uids))
    if access.authorizer == "none":
        return AccessParts(SharedSecretAuthentication(shared_secrets, uids), uids=uids)
    assert shared_secrets is not None, "the settings ask for it with an authorizer"
    seals = seals_of(settings, shared_secrets)
    logins = _logins(settings, shared_secrets, token_secrets)
    super_users = frozenset(access.super_users)
    file = TokensFile(access.tokens_file)
    keys = _issuer_keys(access.jwt)
    kinds: list[FoundTokens] = [file]
    kinds += [] if logins is None else [logins.tokens]
    kinds += [] if keys is None else [_jwt_tokens(access.jwt, keys)]
    tokens = AllTokens(kinds)
    certificates = CertificateIdentities(cluster_id, PrincipalMapping(access.principal_mapping_rules))
    proxies, are_certified = frozenset(access.proxies), settings.tls.is_on and settings.tls.client_auth != "none"
    return AccessParts(
        IdentityAuthentication(tokens, certificates, seals, proxies, uids, are_seals_certified=are_certified),
        Authorizer(super_users=super_users, is_allowed_without_acl=access.allow_everyone_if_no_acl_found),
        super_users,
        seals,
        logins,
        {TOKENS_SETTING: file.file, JWKS_FILE_SETTING: keys.file if isinstance(keys, KeysFile) else None},
        uids,
        keys if isinstance(keys, KeysAddress) else None,
    )


def seals_of(settings: ControllerSettings, shared_secrets: Secrets) -> Seals:
    """The seals of the controller of these settings. The secrets: those in the file that they name."""
    voters = frozenset(voter.id for voter in settings.voters)
    return Seals(shared_secrets, settings.node_id, voters, _wall_ms)


def _logins(settings: ControllerSettings, shared_secrets: Secrets, token_secrets: Secrets | None) -> Logins | None:
    access = settings.access
    if not access.login_mechanisms:
        return None
    mechanisms, lifetime_ms = access.login_mechanisms, access.login_lifetime_ms
    new_nonce, seeds = secrets.token_urlsafe, _seeds(settings)
    return Logins(shared_secrets, token_secrets, mechanisms, lifetime_ms, _wall_ms, new_nonce, steady_ms, seeds)


def _seeds(settings: ControllerSettings) -> Secrets | None:
    """The ids of the voters' directories, which stay when secrets are exchanged; None: static voters have none.

    They are random, and told to who has DESCRIBE on the cluster: he may list the users anyway.
    """
    ids = sorted(voter.directory_id for voter in settings.voters if voter.directory_id is not None)
    seed = ",".join(ids).encode()
    return (lambda: (seed,)) if ids else None


def _issuer_keys(jwt: JwtSettings) -> KeysFile | KeysAddress | None:
    if jwt.jwks_url is not None:
        return KeysAddress(jwt.jwks_url, jwt.jwks_ca_file, jwt.jwks_kept_ms / 1000)
    return None if jwt.jwks_file is None else KeysFile(jwt.jwks_file)


def _jwt_tokens(jwt: JwtSettings, keys: KeysFile | KeysAddress) -> JwtTokens:
    assert jwt.issuer is not None, "the settings ask for it"
    assert jwt.audience is not None, "the settings ask for it"
    rules = JwtRules(jwt.issuer, jwt.audience, jwt.algorithms, jwt.principal_claim, jwt.prefix, jwt.clock_skew_ms)
    return JwtTokens(rules, keys, _wall_ms)


def _wall_ms() -> float:
    return time.time() * 1000
