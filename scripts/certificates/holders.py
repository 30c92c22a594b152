"""Whoever a certificate is for, and what it says of them: a node of a cluster by its URI, a client by its name.

Nothing here makes certificates, so that whoever only needs the names of their files does not wait for that library.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.controller.api.tls_files import TlsPaths
from quorate.controller.identity.identity import NodeIdentity, NodeRole
from quorate.metadata_log.errors import QuorateError

#: CAs that are trusted, that which issues first.
CA_NAME: Final = "ca.pem"
CA_KEY_NAME: Final = "ca.key"
_HOSTS_MAX: Final = 64
#: Of RFC 1035, its dots included.
_HOST_CHARS_MAX: Final = 253
_HOST: Final = re.compile(
    r"(?!\d+(\.\d+)*\.?$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)(\.[A-Za-z0-9_-]{1,63})*"
)
#: What a file can be named after, and of which nothing has to be escaped in a distinguished name. 64 characters are
#: the most that X.520 has room for.
_CLIENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_CLUSTER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CertificateError(QuorateError):
    """A certificate, a key or a CA cannot be made or used. Names the file or the value, and the rule."""


@dataclass(frozen=True, slots=True)
class CertificateHolder:
    """The content of a certificate, but for its key and times."""

    #: Its files are named after it.
    name: str
    common_name: str
    #: Names and IP addresses at which it serves; empty: it serves nobody.
    hosts: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def controller_holder(cluster_id: str, node_id: int, hosts: Iterable[str]) -> CertificateHolder:
    """A controller.

    Raises:
        CertificateError: see ``checked_hosts``.
    """
    return _node_holder(cluster_id, "controller", [node_id], hosts)


def broker_holder(cluster_id: str, ids: Sequence[int], hosts: Iterable[str]) -> CertificateHolder:
    """A process that plays brokers; its files are named after the first.

    Raises:
        CertificateError: see ``checked_hosts``.
    """
    return _node_holder(cluster_id, "broker", ids, hosts)


def _node_holder(cluster_id: str, role: NodeRole, ids: Sequence[int], hosts: Iterable[str]) -> CertificateHolder:
    name = f"{role}-{ids[0]}"
    uris = NodeIdentity(role, frozenset(ids)).uris(cluster_id)
    return CertificateHolder(name, name, checked_hosts(hosts), uris)


def client_principal(name: str) -> str:
    """The principal of a client, if no rule of the controllers makes another of its certificate's subject."""
    return f"User:CN={name}"


def client_holder(name: str) -> CertificateHolder:
    """An operator or a program.

    Raises:
        CertificateError: it is no name for a client.
    """
    if _CLIENT.fullmatch(name) is None:
        raise CertificateError(
            f"{name[:80]!r} is no name for a client: letters, digits and . _ @ - are, 64 at most, a letter or digit"
            " first"
        )
    return CertificateHolder(f"client-{name}", name)


def checked_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    """Names and addresses of machines, each once.

    Raises:
        CertificateError: one is none, there are too many, or none at all.
    """
    found = tuple(dict.fromkeys(hosts))
    for host in found:
        if not _is_address(host) and (len(host) > _HOST_CHARS_MAX or _HOST.fullmatch(host) is None):
            raise CertificateError(f"{host[:80]!r} is neither a host name nor an IP address")
    if not 0 < len(found) <= _HOSTS_MAX:
        raise CertificateError(f"{len(found)} hosts: whoever serves has between 1 and {_HOSTS_MAX}")
    return found


def _is_address(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def checked_cluster(cluster_id: str) -> str:
    """The id of a cluster as it can stand in the URI of a node.

    Raises:
        CertificateError: it cannot.
    """
    if _CLUSTER.fullmatch(cluster_id) is None:
        raise CertificateError(f"{cluster_id[:80]!r} is no cluster id: 1 to 64 letters, digits, - and _")
    return cluster_id


def files_of(directory: Path, name: str) -> TlsPaths:
    """The files of a holder in a directory, as settings name them."""
    return TlsPaths(directory / f"{name}.pem", directory / f"{name}.key", (directory / CA_NAME,))
