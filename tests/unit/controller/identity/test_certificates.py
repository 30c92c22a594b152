"""A certificate is a node of this cluster by its URI, a user by its subject, or nobody."""

from __future__ import annotations

import pytest

from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.identity import Identity, NodeIdentity, NodeRole
from quorate.controller.principals.alternative_names import certificate_uris
from quorate.controller.principals.der import BadDer
from quorate.controller.principals.mapping_rules import PrincipalMapping
from tests.unit.controller.identity.shown_certificates import certificate

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
IDENTITIES = CertificateIdentities(CLUSTER, PrincipalMapping("RULE:^CN=([a-z]*).*$/$1/U"))


def node_of(role: str, *ids: int, cluster: str = CLUSTER) -> list[str]:
    return [f"quorate://{cluster}/{role}/{id_}" for id_ in ids]


@pytest.mark.parametrize(("role", "ids"), [("broker", (11, 12)), ("controller", (1,))])
def test_certificate_with_uris_of_nodes_is_those_nodes(role: NodeRole, ids: tuple[int, ...]) -> None:
    shown = certificate("node", "https://elsewhere.example/", *node_of(role, *ids))
    principal = f"{role.capitalize()}:{','.join(map(str, ids))}"
    assert IDENTITIES.identity(shown) == Identity(principal, "certificate", NodeIdentity(role, frozenset(ids)))


def test_certificate_without_a_uri_of_ours_is_the_user_that_the_rules_name() -> None:
    for shown in (certificate("ana"), certificate("ana", "spiffe://ana.example/")):
        assert IDENTITIES.identity(shown) == Identity("User:ANA", "certificate")


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (certificate("ana", *node_of("broker", 11, cluster="another")), "no node of cluster"),
        (certificate("ana", *node_of("broker", 11), *node_of("broker", 11, cluster="another")), "no node of cluster"),
        (certificate("ana", *node_of("voter", 1)), "no node of cluster"),
        (certificate("ana", f"quorate://{CLUSTER}/broker/x"), "no node of cluster"),
        (certificate("ana", f"quorate://{CLUSTER}/broker/11/"), "no node of cluster"),
        (certificate("ana", *node_of("broker", 11), *node_of("controller", 1)), "make one for each"),
        (certificate("1"), "makes no principal: a principal is Type:name"),
        (b"rubbish", "makes no principal"),
    ],
    # Certificates are others each time they are made: no worker would know the tests of another by them.
    ids=["another cluster", "two clusters", "another role", "no id", "an empty id", "two roles", "no type", "rubbish"],
)
def test_certificate_that_makes_nobody_is_refused_and_not_taken_for_its_subject(shown: bytes, says: str) -> None:
    with pytest.raises(NoAccess, match=says) as refused:
        IDENTITIES.identity(shown)
    assert refused.value.status == 403


def test_certificate_that_is_shown_again_is_not_read_again() -> None:
    shown = certificate("node", *node_of("broker", 11))

    assert IDENTITIES.identity(shown) is IDENTITIES.identity(bytes(bytearray(shown)))


def test_certificates_that_were_read_are_kept_up_to_a_bound() -> None:
    first, second = certificate("ana"), certificate("berta")
    bounded = CertificateIdentities(CLUSTER, PrincipalMapping(), kept_bytes_max=len(first) + len(second) - 1)

    before, after = bounded.identity(first), bounded.identity(second)

    assert bounded.identity(second) is after
    assert bounded.identity(first) is not before
    assert bounded.identity(first) == before


def test_uris_of_a_certificate_cut_at_any_byte_are_an_error_and_never_fewer() -> None:
    whole = certificate("node", *node_of("broker", 11))
    assert certificate_uris(whole) == node_of("broker", 11)
    for end in range(len(whole)):
        with pytest.raises(BadDer):
            certificate_uris(whole[:end])
