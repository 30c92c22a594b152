"""A standing right: it ends with the proof, the identity or the ACL, and is not looked up while nothing has changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import Caller, Identity
from quorate.controller.permissions.access_control import AccessControl
from quorate.controller.permissions.rights import Rights
from quorate.controller.permissions.standing import StandingRight
from quorate.metadata_log.errors import ApiError
from quorate.snapshots.image.image_parts import AclsImage
from tests.unit.controller.authorizer.acl_sets import acl, acls_image

CLAIMS = RequestClaims("GET", "/", "10.0.0.1", {})
ANA = Identity("User:ana", "token")


class Known:
    """``Authentication`` of one token, whose owner changes."""

    def __init__(self) -> None:
        self.generation = 0
        self.owner: Identity | None = ANA
        self.asked = 0

    def identify(self, claims: RequestClaims) -> Caller:
        self.asked += 1
        if self.owner is None:
            raise NoAccess(401, "nobody has this token")
        return Caller(self.owner, claims.address)

    def belongs_to(self, owner: Identity | None) -> None:
        self.owner = owner
        self.generation += 1


class Stage:
    """A right of ana's, by an ACL, and who needs it."""

    def __init__(self) -> None:
        self.known = Known()
        self.acls: AclsImage = acls_image([acl()])
        self.needed = 0
        self.access = AccessControl(self.known, authorizer=Authorizer(), acls=lambda: self.acls)
        self.right = StandingRight(self.access, CLAIMS, self.access.identify(CLAIMS))

    def need(self, rights: Rights) -> None:
        self.needed += 1
        if not rights.may("READ", "TOPIC", "orders"):
            raise rights.refusal("needs READ")


def test_right_is_not_looked_up_while_nothing_has_changed() -> None:
    on = Stage()
    for _ in range(3):
        on.right.check(on.need)
    assert (on.known.asked, on.needed) == (1, 0)


def test_right_is_looked_up_once_for_each_change_and_stands() -> None:
    on = Stage()
    on.known.belongs_to(ANA)
    on.acls = acls_image([acl(), acl(name="others")])
    for _ in range(3):
        on.right.check(on.need)
    assert (on.known.asked, on.needed) == (2, 1)


def nobody_has_the_token(on: Stage) -> None:
    on.known.belongs_to(None)


def another_has_the_token(on: Stage) -> None:
    on.known.belongs_to(Identity("User:ben", "token"))


def acl_is_removed(on: Stage) -> None:
    on.acls = acls_image([])


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (nobody_has_the_token, NoAccess, "nobody has this token"),
        (another_has_the_token, NoAccess, "what proved User:ana is somebody else's by now"),
        (acl_is_removed, ApiError, "User:ana needs READ"),
    ],
)
def test_right_ends_with_the_proof_the_identity_or_the_acl(
    change: Callable[[Stage], None], error: type[ApiError], says: str
) -> None:
    on = Stage()
    on.right.check(on.need)
    change(on)
    for _ in range(2):
        with pytest.raises(error, match=says):
            on.right.check(on.need)
