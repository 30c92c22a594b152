"""Access to a process's own HTTP API: whoever asks is found out, and what he may do there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from quorate.broker.access_settings import BrokerAccessSettings
from quorate.broker.http.permissions import asks_for_the_secret
from quorate.broker.publisher import Manifest, MetadataPublisher
from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.authentication import IdentityAuthentication
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import RequestClaims
from quorate.controller.identity.identity import NOBODY, Caller
from quorate.controller.identity.secrets import Secrets
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.identity.tokens_file import TokensFile
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.permissions.permission import Open, Permission
from quorate.controller.permissions.rights import ALL_RIGHTS, Rights
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import AclsImage


class HttpAccess(Protocol):
    """Access to one process."""

    def rights(self, claims: RequestClaims, permission: Permission) -> Rights:
        """The rights of whoever makes a request, who has the permission of its route.

        Raises:
            ApiError: he has not, or it is not known who he is.
        """

    def owner_of_connection(self, caller: Caller) -> str | None:
        """See ``AccessControl.owner_of_connection``."""


class SecretAccess:
    """Everybody on this machine may read; whoever has the secret, if there is one, may change something."""

    def __init__(self, secrets: Secrets | None) -> None:
        self._authentication = None if secrets is None else SharedSecretAuthentication(secrets)

    def rights(self, claims: RequestClaims, permission: Permission) -> Rights:
        """See ``HttpAccess``."""
        if self._authentication is None:
            return ALL_RIGHTS
        is_needed = asks_for_the_secret(permission)
        try:
            return replace(ALL_RIGHTS, caller=self._authentication.identify(claims))
        except HttpRefusal:
            if is_needed:
                raise
            return replace(ALL_RIGHTS, caller=Caller(NOBODY, claims.address))

    def owner_of_connection(self, caller: Caller) -> None:
        """See ``HttpAccess``: whoever shows the secret is the cluster's own."""


class AclAccess(MetadataPublisher):
    """By certificates and tokens, and by the newest ACLs of the image: as the controllers decide."""

    def __init__(self, settings: BrokerAccessSettings, cluster_id: Callable[[], str]) -> None:
        """``cluster_id``: known when the first image is.

        Raises:
            InvalidSettings: the file of tokens cannot be used.
        """
        self._settings = settings
        self._cluster_id = cluster_id
        self._tokens = TokensFile(settings.tokens_file)
        self._acls = AclsImage()
        #: Before there is an image no ACL is known, and no node.
        self._control = self._made("", is_allowed_without_acl=False)
        self._has_image = False

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        """See ``MetadataPublisher``: what has become of the ACLs is taken in, so that no request pays for it."""
        self._acls = image.acls
        if not self._has_image:
            self._has_image = True
            is_allowed = self._settings.allow_everyone_if_no_acl_found
            self._control = self._made(self._cluster_id(), is_allowed_without_acl=is_allowed)
        self._control.moved()

    def rights(self, claims: RequestClaims, permission: Permission) -> Rights:
        """See ``HttpAccess``."""
        if isinstance(permission, Open):
            return self._control.rights(self._whoever(claims))
        if headers.HOPS.lower() in claims.fields:
            raise HttpRefusal(400, f"{headers.HOPS}: requests are passed on to controllers, and to no broker")
        rights = self._control.rights(self._control.identify(claims))
        permission.check(rights, None)
        return rights

    def owner_of_connection(self, caller: Caller) -> str | None:
        """See ``HttpAccess``."""
        return self._control.owner_of_connection(caller)

    def _whoever(self, claims: RequestClaims) -> Caller:
        """Nobody, where nothing good was shown."""
        try:
            return self._control.identify(claims)
        except HttpRefusal:
            return Caller(NOBODY, claims.address)

    def _made(self, cluster_id: str, *, is_allowed_without_acl: bool) -> AccessControl:
        settings, super_users = self._settings, frozenset(self._settings.super_users)
        certificates = CertificateIdentities(cluster_id, PrincipalMapping(settings.principal_mapping_rules))
        return AccessControl(
            IdentityAuthentication(self._tokens, certificates, None, frozenset(settings.proxies)),
            authorizer=Authorizer(super_users=super_users, is_allowed_without_acl=is_allowed_without_acl),
            acls=lambda: self._acls,
            super_users=super_users,
        )
