"""TLS on the quorum's port, by the certificates that the HTTP API is served with."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.identity.certificates import CertificateIdentities
from quorate.controller.identity.claims import NoAccess
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.quorum.transport.tls import QuorumTls


def quorum_tls(files: TlsFiles | None, cluster_id: str) -> QuorumTls | None:
    """Between the voters of a cluster; None without certificates."""
    if files is None:
        return None
    return QuorumTls(files.as_peer_server, files.as_peer_client, controllers_of(cluster_id))


def own_certificate_check(cluster_id: str, node_id: int) -> Callable[[bytes], None]:
    """Raises NoAccess for a certificate that no other voter would take for this controller's."""
    controllers = controllers_of(cluster_id)

    def check(certificate: bytes) -> None:
        if node_id not in controllers(certificate):
            raise NoAccess(
                403, f"it is that of another controller, and not quorate://{cluster_id}/controller/{node_id}"
            )

    return check


def controllers_of(cluster_id: str) -> Callable[[bytes], frozenset[int]]:
    """Gives the ids of the controllers that a certificate (DER) names; raises NoAccess if it names none."""
    identities = CertificateIdentities(cluster_id, PrincipalMapping())

    def controllers(certificate: bytes) -> frozenset[int]:
        node = identities.identity(certificate).node
        if node is None or node.role != "controller":
            who = "no node" if node is None else str(node)
            raise NoAccess(403, f"it is of {who}, and has no URI quorate://{cluster_id}/controller/ID")
        return node.ids

    return controllers
