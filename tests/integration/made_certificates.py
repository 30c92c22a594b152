"""CAs and certificates for tests of TLS, made in memory, and contexts as servers and clients use them."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import trustme

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsPaths


class SpokenTls(NamedTuple):
    """The contexts of all servers and clients of a test; None: they speak none."""

    as_server: TlsContexts | None = None
    as_client: TlsContexts | None = None
    wants_certificates: bool = False


NO_TLS = SpokenTls()


@cache
def authority(name: str = "ours") -> trustme.CA:
    """A CA; the same name is the same CA."""
    return trustme.CA(organization_name=name, key_type=trustme.KeyType.ECDSA)


def issued(ca: trustme.CA, *names: str, is_expired: bool = False, common_name: str | None = None) -> trustme.LeafCert:
    """A certificate for names and addresses."""
    ends = datetime.now(UTC) - timedelta(hours=1) if is_expired else None
    kind = trustme.KeyType.ECDSA
    return ca.issue_cert(*names, common_name=common_name, not_after=ends, key_type=kind)


def server_context(
    certificate: trustme.LeafCert, clients: trustme.CA | None = None, *, wants: ssl.VerifyMode = ssl.CERT_NONE
) -> ssl.SSLContext:
    """Of a server that shows ``certificate``; ``clients``: the CA of those it wants one of."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
    context.verify_mode = wants
    return context


def client_context(trusted: Sequence[trustme.CA], certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Of a client that trusts ``trusted`` and nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for ca in trusted:
        ca.configure_trust(context)
    if certificate is not None:
        certificate.configure_cert(context)
    return context


def written(directory: Path, ca: trustme.CA, certificate: trustme.LeafCert) -> TlsPaths:
    """The files of one process, as its settings name them."""
    paths = TlsPaths(directory / "cert.pem", directory / "key.pem", (directory / "ca.pem",))
    (directory / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (directory / "key.pem").touch(0o600)
    (directory / "key.pem").write_bytes(certificate.private_key_pem.bytes())
    ca.cert_pem.write_to_path(str(directory / "ca.pem"))
    return paths
