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
#: Of certificates whose identities are kept, some ten thousand of the usual size: more than there are connections.
_KEPT_BYTES_MAX: Final = 8 * 1024 * 1024


class CertificateIdentities:
    """Of one cluster. Owned by one thread."""

    def __init__(self, cluster_id: str, mapping: PrincipalMapping, *, kept_bytes_max: int = _KEPT_BYTES_MAX) -> None:
        """``mapping``: gives names of users for distinguished names. ``kept_bytes_max``: of certificates once read."""
        self._cluster_id = cluster_id
        self._mapping = mapping
        self._kept_bytes_max = kept_bytes_max
        #: By certificate, for a client shows the same one with every request: an identity follows from nothing else.
        self._kept: dict[bytes, Identity] = {}
        self._kept_bytes = 0

    def identity(self, certificate: bytes) -> Identity:
        """The identity of whoever showed this certificate (DER), which was looked at in the handshake.

        Raises:
            NoAccess: 403, it makes nobody of this cluster.
        """
        found = self._kept.get(certificate)
        if found is None:
            found = self._read(certificate)
            self._keep(certificate, found)
        return found

    def _keep(self, certificate: bytes, found: Identity) -> None:
        self._kept_bytes += len(certificate)
        if self._kept_bytes > self._kept_bytes_max:
            self._kept.clear()
            self._kept_bytes = len(certificate)
        self._kept[certificate] = found

    def _read(self, certificate: bytes) -> Identity:
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
