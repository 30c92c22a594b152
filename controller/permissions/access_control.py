"""Access to one node: who asks is found out, and what he may do is looked up in the node's newest committed ACLs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.decisions.origin import Grounds
from quorate.controller.identity.claims import Authentication, RequestClaims
from quorate.controller.identity.identity import Caller
from quorate.controller.identity.logins import Logins
from quorate.controller.identity.seals import Seal, Seals
from quorate.controller.identity.secrets import Secrets
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.identity.uids import UidIdentities
from quorate.controller.permissions.rights import Rights
from quorate.snapshots.image.image_parts import AclsImage


class AccessControl:
    """Of one controller process. Owned by the loop thread."""

    def __init__(
        self,
        authentication: Authentication,
        *,
        authorizer: Authorizer | None = None,
        acls: Callable[[], AclsImage] = AclsImage,
        super_users: frozenset[str] = frozenset(),
        seals: Seals | None = None,
        logins: Logins | None = None,
        uids: UidIdentities | None = None,
    ) -> None:
        """``authorizer`` None: nobody is asked. ``acls``: the newest committed ones. ``seals``: of this controller.

        ``uids``: tells who runs this process, and may do everything.
        """
        self._uids = uids
        self._authentication = authentication
        self._authorizer = authorizer
        self._acls = acls
        self._super_users = super_users
        self._seals = seals
        #: By which clients log in; None: nobody does.
        self.logins = logins

    @classmethod
    def by_secret(cls, secrets: Secrets | None) -> AccessControl:
        """Whoever has the secret may do everything; without one, whoever reaches the port (loopback only)."""
        return cls(SharedSecretAuthentication(secrets))

    @property
    def is_enforced(self) -> bool:
        """Whether there is anything that somebody may not do."""
        return self._authorizer is not None

    @property
    def seal(self) -> Seal | None:
        """The seal by which this controller shows others who it is; None: a secret or a certificate does."""
        return None if self._seals is None else self._seals.seal

    @property
    def generation(self) -> int:
        """Another number as soon as another caller may be behind the same head of a request."""
        return self._authentication.generation

    def identify(self, claims: RequestClaims) -> Caller:
        """See ``Authentication``."""
        return self._authentication.identify(claims)

    def owner_of_connection(self, caller: Caller) -> str | None:
        """The principal whose connections are bounded, this one among them; None: it is one of the cluster's own."""
        return None if caller.hops else self._owner(caller, caller.proxy or caller.principal)

    def owner_of_body(self, caller: Caller) -> str | None:
        """The same of bodies, which are his who asks, whoever passes them on."""
        return self._owner(caller, caller.principal)

    def _owner(self, caller: Caller, principal: str) -> str | None:
        is_free = self._authorizer is None or caller.identity.node is not None or self._is_super(caller, principal)
        return None if is_free else principal

    def _is_super(self, caller: Caller, principal: str) -> bool:
        return principal in self._super_users or self._runs_process(caller)

    def _runs_process(self, caller: Caller) -> bool:
        return self._uids is not None and self._uids.is_own(caller.identity)

    def moved(self) -> None:
        """Take in what has become of the ACLs, so that no request pays for many of them at once."""
        if self._authorizer is not None:
            self._authorizer = self._authorizer.following(self._acls())

    def rights(self, caller: Caller) -> Rights:
        """As of now."""
        if self._authorizer is None:
            return Rights(caller, None, is_super=True)
        self.moved()
        # Nodes act by their number alone, whatever else is said of their names.
        is_super = caller.identity.node is None and self._is_super(caller, caller.principal)
        is_own = self._runs_process(caller)
        rule = "runs this process" if is_own else partial(_rule, caller, is_super=is_super)
        return Rights(caller, self._authorizer, is_super, Grounds(rule))


def _rule(caller: Caller, *, is_super: bool) -> str:
    """The reason for what no ACL is asked about. Put into words for who wants to know: a node may have many ids."""
    if is_super:
        return "access.super_users"
    return "everybody may, for himself" if caller.identity.node is None else f"is {caller.identity.node}"
