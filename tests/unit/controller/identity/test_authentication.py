"""Who makes a request, where an authorizer asks: what is offered and wrong is refused, and no name makes anybody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.identity.authentication import IdentityAuthentication, forwarded_identity
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import NOBODY, Caller, Identity, NodeIdentity
from quorate.controller.identity.seals import Seals
from quorate.controller.identity.uids import UidIdentities
from quorate.controller.principals.mapping_rules import PrincipalMapping
from tests.unit.controller.identity.shown_certificates import certificate

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
ANA = Identity("User:ana", "token")
GATEWAY = Identity("User:gateway", "token", ends_ms=7)
BROKER = Identity("Broker:11", "token", NodeIdentity("broker", frozenset({11})))
CERTIFIED = Identity("User:CN=ana", "certificate")
CERTIFICATE = certificate("ana")
CONTROLLER_CERTIFICATE = certificate("controller", f"quorate://{CLUSTER}/controller/2")
#: Of the broker with the number of that controller.
BROKER_CERTIFICATE = certificate("broker", f"quorate://{CLUSTER}/broker/2")
CERTIFIED_CONTROLLER = Identity("Controller:2", "certificate", NodeIdentity("controller", frozenset({2})))
TOKENS = {"a" * 43: ANA, "g" * 43: GATEWAY, "b" * 43: BROKER}
HOST = {"Host": "localhost:1"}
CERTIFICATES = CertificateIdentities(CLUSTER, PrincipalMapping())
SEALS = Seals(lambda: (b"s" * 32,), 1, frozenset({1, 2, 3}), lambda: 0.0)


class Tokens:
    """Tokens that never change."""

    generation = 0

    def find(self, token: str) -> Identity | None:
        return TOKENS.get(token)


def identify(sent: dict[str, str], shown: bytes | None = None) -> Caller:
    authentication = IdentityAuthentication(Tokens(), CERTIFICATES, SEALS, frozenset({"User:gateway"}))
    fields = {name.lower(): value for name, value in (HOST | sent).items()}
    return authentication.identify(RequestClaims("GET", "/v1/topics", "10.0.0.9", fields, shown))


@pytest.mark.parametrize(
    ("sent", "uid", "identity"),
    [
        ({}, 1000, Identity("User:uid-1000", "uid")),
        ({}, 1001, Identity("User:carl", "uid")),
        ({"Host": "any.example"}, 1000, Identity("User:uid-1000", "uid")),
        ({"Authorization": f"Bearer {'a' * 43}"}, 1000, ANA),
    ],
)
def test_user_at_the_socket_is_who_the_kernel_says_unless_he_shows_more(
    sent: dict[str, str], uid: int, identity: Identity
) -> None:
    assert identify_at_socket(sent, uid) == Caller(identity, "127.0.0.1")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"Authorization": "Bearer rubbish"}, 401),
        ({headers.PRINCIPAL: "User:ana"}, 403),
        ({headers.HOPS: "1", headers.PRINCIPAL: "User:ana", headers.IDENTITY: "uid"}, 403),
    ],
)
def test_user_at_the_socket_who_offers_what_is_wrong_is_refused(sent: dict[str, str], status: int) -> None:
    with pytest.raises(NoAccess) as refused:
        identify_at_socket(sent, 1000)
    assert refused.value.status == status


def identify_at_socket(sent: dict[str, str], uid: int) -> Caller:
    uids = UidIdentities(1000, {1001: "User:carl"})
    authentication = IdentityAuthentication(Tokens(), CERTIFICATES, SEALS, frozenset({"User:gateway"}), uids)
    fields = {name.lower(): value for name, value in (HOST | sent).items()}
    return authentication.identify(RequestClaims("GET", "/v1/topics", "127.0.0.1", fields, None, uid))


def bearer(letter: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {letter * 43}"}


def sealed(**sent: str) -> dict[str, str]:
    named = {headers.HOPS: "1", headers.CLIENT: "10.0.0.7", headers.PRINCIPAL: "User:ana"} | {headers.IDENTITY: "token"}
    named = {name: value for name, value in (named | sent).items() if value}
    return named | {"Authorization": SEALS.seal("GET", "/v1/topics", named, b"")}


@pytest.mark.parametrize(
    ("sent", "shown", "identity"),
    [
        (bearer("a"), None, ANA),
        (bearer("b"), None, BROKER),
        ({}, None, NOBODY),
        ({}, CERTIFICATE, CERTIFIED),
        (bearer("a"), CERTIFICATE, CERTIFIED),
        (bearer("a") | {headers.PRINCIPAL: "User:ana"}, None, ANA),
        (bearer("g") | {headers.PRINCIPAL: "User:ben"}, None, Identity("User:ben", "token", ends_ms=7)),
    ],
    # A certificate is another each time it is made: no worker would know the tests of another by it.
    ids=["user", "node", "nobody", "certificate", "both", "its own principal", "another's principal"],
)
def test_identity_is_what_was_proved_first(sent: dict[str, str], shown: bytes | None, identity: Identity) -> None:
    proxy = "User:gateway" if identity.principal == "User:ben" else ""
    assert identify(sent, shown) == Caller(identity, "10.0.0.9", proxy=proxy)


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (bearer("x"), 401, "nobody has this token"),
        ({"Authorization": "Bearer"}, 401, "must be Bearer"),
        ({"Authorization": "Basic YTpi"}, 401, "must be Bearer"),
        ({"Authorization": "Quorate-Seal 1.0.ab.cd"}, 401, "form"),
        ({"Host": "evil.example"}, 403, "localhost"),
        (bearer("a") | {headers.PRINCIPAL: "User:root"}, 403, "User:ana may not ask in the name of User:root"),
        ({headers.PRINCIPAL: "User:root"}, 403, "User:ANONYMOUS may not"),
        (bearer("b") | {headers.PRINCIPAL: "User:root"}, 403, "Broker:11 may not"),
        (bearer("a") | {headers.HOPS: "1"}, 403, "for controllers"),
        (bearer("g") | {headers.CLIENT: "10.0.0.1"}, 403, "for controllers"),
        (bearer("b") | {headers.IDENTITY: "token broker/12"}, 403, "for controllers"),
        (sealed(**{headers.PRINCIPAL: ""}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: ""}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: "token broker/x"}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: "faith"}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: "faith until/7"}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: "jwt until/"}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: "jwt until/7 broker/11"}), 401, "says who made it"),
        (sealed(**{headers.IDENTITY: f"jwt until/{10**15}"}), 401, "says who made it"),
        (sealed(**{headers.CLIENT: "somewhere"}), 400, "IP address"),
        (sealed(**{headers.HOPS: "many"}), 400, "small number"),
    ],
)
def test_wrong_proof_or_a_name_without_one_is_refused(sent: dict[str, str], status: int, says: str) -> None:
    with pytest.raises(HttpRefusal, match=says) as refused:
        identify(sent)
    assert refused.value.status == status
    assert isinstance(refused.value, NoAccess) == (status != 400)


@pytest.mark.parametrize("identity", [ANA, BROKER, NOBODY, CERTIFIED, GATEWAY, replace(BROKER, ends_ms=10**15 - 1)])
def test_request_that_was_passed_on_is_its_clients(identity: Identity) -> None:
    caller = identify(sealed(**{headers.PRINCIPAL: identity.principal, headers.IDENTITY: forwarded_identity(identity)}))
    assert (caller.identity, caller.address, caller.hops) == (identity, "10.0.0.7", 1)
    assert caller.body_digest is not None


def test_controller_is_known_by_seal_or_certificate_and_passes_on_by_its_seal_alone() -> None:
    """Whoever has stolen its key, and not the secret, is nobody but that controller."""
    node = NodeIdentity("controller", frozenset({1}))
    own = {"Authorization": SEALS.seal("GET", "/v1/topics", {}, b"")}
    assert identify(own).identity == Identity("Controller:1", "seal", node)
    assert identify({}, CONTROLLER_CERTIFICATE).identity == CERTIFIED_CONTROLLER
    assert identify(sealed(), CONTROLLER_CERTIFICATE).identity == ANA
    unsealed = {name: value for name, value in sealed().items() if name != "Authorization"}
    for also in ({}, bearer("a")):
        with pytest.raises(NoAccess, match="its certificate is not enough") as refused:
            identify(unsealed | also, CONTROLLER_CERTIFICATE)
        assert refused.value.status == 401


@pytest.mark.parametrize(("node_id", "is_known"), [(2, True), (3, False)])
def test_seal_of_a_clock_that_is_apart_is_known_on_a_connection_of_its_maker_alone(
    node_id: int, is_known: bool
) -> None:
    """Whose certificate the connection shows, nobody else has sent the request."""
    hour_ahead = Seals(lambda: (b"s" * 32,), node_id, frozenset({1, 2, 3}), lambda: 3_600_000.0)
    sent = {"Authorization": hour_ahead.seal("GET", "/v1/topics", {}, b"")}
    if is_known:
        assert identify(sent, CONTROLLER_CERTIFICATE).identity.node == CERTIFIED_CONTROLLER.node
    for shown in (None, CERTIFICATE, BROKER_CERTIFICATE, *([] if is_known else [CONTROLLER_CERTIFICATE])):
        with pytest.raises(NoAccess, match="are the clocks of the controllers apart"):
            identify(sent, shown)


@pytest.mark.parametrize(("node_id", "is_known"), [(2, True), (1, False)])
def test_seal_that_somebody_sends_again_is_nobodys_where_controllers_show_certificates(
    node_id: int, is_known: bool
) -> None:
    seals = Seals(lambda: (b"s" * 32,), node_id, frozenset({1, 2, 3}), lambda: 0.0)
    authentication = IdentityAuthentication(Tokens(), CERTIFICATES, seals, frozenset(), are_seals_certified=True)
    fields = {"authorization": seals.seal("GET", "/v1/topics", {}, b"")}
    claims = RequestClaims("GET", "/v1/topics", "10.0.0.9", fields, CONTROLLER_CERTIFICATE)
    if is_known:
        assert authentication.identify(claims).identity.node == CERTIFIED_CONTROLLER.node
    for shown in (None, CERTIFICATE, BROKER_CERTIFICATE, *([] if is_known else [CONTROLLER_CERTIFICATE])):
        with pytest.raises(NoAccess, match=f"a seal of controller {node_id} counts only on a connection with its"):
            authentication.identify(claims._replace(certificate=shown))
