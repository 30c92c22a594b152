"""A standing right: that by which an answer goes on which takes its time, looked at again before each piece of it."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import Caller
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.permissions.rights import Rights


class StandingRight:
    """Of one request, from the moment on in which it was found out who makes it."""

    def __init__(self, access: AccessControl, claims: RequestClaims, caller: Caller) -> None:
        """``caller``: whom ``access`` has just found out by the claims."""
        self._access = access
        self._claims = claims
        self._caller = caller
        self._generation = access.generation
        self._authorizer = access.rights(caller).authorizer

    def check(self, need: Callable[[Rights], None]) -> None:
        """Look again, which costs next to nothing while no secret, token or ACL has changed.

        Args:
            need: raises where rights do not suffice, as when the request came.

        Raises:
            NoAccess: the request's proof is that of its caller no more. ApiError: CLUSTER_AUTHORIZATION_FAILED, the
                caller has the right no more.
        """
        generation = self._access.generation
        if generation != self._generation:
            if self._access.identify(self._claims).identity != self._caller.identity:
                raise NoAccess(401, f"what proved {self._caller.principal} is somebody else's by now: ask again")
            self._generation = generation
        rights = self._access.rights(self._caller)
        if rights.authorizer is not self._authorizer:
            need(rights)
            self._authorizer = rights.authorizer
