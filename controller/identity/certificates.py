"""Whoever shows a certificate of a trusted CA: a node of the cluster by its URI, others by their distinguished name.

``quorate://CLUSTER_ID/controller/ID`` and ``quorate://CLUSTER_ID/broker/ID`` are nodes. A certificate of a node of
another cluster, whose CA may be the same, is nobody's here: it does not become a client with the name of its subject.
"""

from __future__ import annotations

import re
from typing import Final

from quorate.controller.decisions.origin import check_principal
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.identity import Identity, NodeIdentity, NodeRole
from quorate.controller.principals.alternative_names import certificate_uris
from quorate.controller.principals.distinguished_names import certificate_name
from quorate.controller.principals.mapping_rules import PrincipalMapping
from quorate.metadata_log.errors import QuorateError

_SCHEME: Final = "quorate://"
_NODE_URI: Final = re.compile(r"quorate://([^/]{1,64})/(controller|broker)/([0-9]{1,10})")


class CertificateIdentities:
    """Of one cluster."""

    def __init__(self, cluster_id: str, mapping: PrincipalMapping) -> None:
        """``mapping``: gives names of users for distinguished names."""
        self._cluster_id = cluster_id
        self._mapping = mapping

    def identity(self, certificate: bytes) -> Identity:
        """The identity of whoever showed this certificate (DER), which was looked at in the handshake.

        Raises:
            NoAccess: 403, it makes nobody of this cluster.
        """
        try:
            uris = [uri for uri in certificate_uris(certificate) if uri.startswith(_SCHEME)]
            if uris:
                return self._node(uris)
            name = self._mapping.name_of(certificate_name(certificate))
            return Identity(check_principal(f"User:{name}"), "certificate")
        except NoAccess:
            raise
        except QuorateError as error:
            raise NoAccess(403, f"this client certificate makes no principal: {error}") from error

    def _node(self, uris: list[str]) -> Identity:
        ids: dict[NodeRole, set[int]] = {"controller": set(), "broker": set()}
        for uri in uris:
            form = _NODE_URI.fullmatch(uri)
            if form is None or form[1] != self._cluster_id:
                raise NoAccess(
                    403, f"this client certificate is of {uri[:120]!r}, no node of cluster {self._cluster_id}"
                )
            ids["controller" if form[2] == "controller" else "broker"].add(int(form[3]))
        if ids["controller"] and ids["broker"]:
            raise NoAccess(403, "this client certificate is of controllers and of brokers: make one for each")
        role: NodeRole = "controller" if ids["controller"] else "broker"
        node = NodeIdentity(role, frozenset(ids[role]))
        listed = ",".join(map(str, sorted(node.ids)))
        return Identity(f"{role.capitalize()}:{listed}", "certificate", node)
