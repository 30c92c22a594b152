"""Users of this machine at the Unix socket: who they are, who needs no secret, and who may do everything."""

from __future__ import annotations

import pytest

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import Caller, Identity
from quorate.controller.identity.shared_secret import SharedSecretAuthentication
from quorate.controller.identity.uids import UidIdentities
from quorate.controller.permissions.access_control import AccessControl

SECRET = b"s" * 32
OWN, CARL, STRANGER = 1000, 1001, 1002
UIDS = UidIdentities(OWN, {CARL: "User:carl"})


def is_super(identity: Identity, uids: UidIdentities = UIDS) -> bool:
    access = AccessControl(SharedSecretAuthentication(None), authorizer=Authorizer(), uids=uids)
    return access.rights(Caller(identity, "127.0.0.1")).is_super


def test_user_that_runs_the_process_may_do_everything_and_nobody_by_his_name() -> None:
    assert is_super(UIDS.identity(OWN))
    assert not is_super(UIDS.identity(CARL))
    assert not is_super(UIDS.identity(STRANGER))
    assert not is_super(Identity(f"User:uid-{OWN}", "token"))
    assert not is_super(Identity(f"User:uid-{OWN}", "certificate"))


def test_user_whom_settings_name_is_that_principal_and_no_more() -> None:
    named = UidIdentities(OWN, {OWN: "User:ana"})
    assert named.identity(OWN) == Identity("User:ana", "uid")
    assert not is_super(named.identity(OWN), named)
    assert not is_super(Identity(f"User:uid-{OWN}", "uid"), UidIdentities(OWN, {OWN: f"User:uid-{OWN}"}))


@pytest.mark.parametrize(
    ("uid", "sent", "identity"),
    [
        (OWN, {}, Identity(f"User:uid-{OWN}", "uid")),
        (CARL, {}, Identity("User:carl", "uid")),
        (OWN, {"x-quorate-principal": "User:ana"}, Identity("User:ana", "said")),
        (STRANGER, {"authorization": f"Bearer {SECRET.decode()}"}, Identity("User:ANONYMOUS", "said")),
    ],
)
def test_where_a_secret_is_asked_for_known_users_need_none(uid: int, sent: dict[str, str], identity: Identity) -> None:
    claims = RequestClaims("GET", "/v1/topics", "127.0.0.1", sent, None, uid)
    assert SharedSecretAuthentication(lambda: (SECRET,), UIDS).identify(claims).identity == identity


def test_where_a_secret_is_asked_for_a_stranger_at_the_socket_needs_it_too() -> None:
    claims = RequestClaims("GET", "/v1/topics", "127.0.0.1", {}, None, STRANGER)
    with pytest.raises(NoAccess, match="the shared secret is missing or wrong"):
        SharedSecretAuthentication(lambda: (SECRET,), UIDS).identify(claims)
