"""CAs and certificates for tests of TLS, made in memory, and contexts as servers and clients use them."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair, Validity
from quorate.scripts.certificates.certificate_files import write_whole
from quorate.scripts.certificates.holders import CertificateHolder

_CENTURY_DAYS = 36_500
_DAYS = 30


class SpokenTls(NamedTuple):
    """The contexts of all servers and clients of a test; None: they speak none."""

    as_server: TlsContexts | None = None
    as_client: TlsContexts | None = None
    wants_certificates: bool = False


NO_TLS = SpokenTls()


@cache
def authority(name: str = "ours") -> CertificateAuthority:
    """A CA; the same name is the same CA."""
    return CertificateAuthority.make(name, Validity.of(_CENTURY_DAYS))


def issued(
    ca: CertificateAuthority,
    *hosts: str,
    uris: Sequence[str] = (),
    is_expired: bool = False,
    ends: datetime | None = None,
    common_name: str = "somebody",
) -> KeyPair:
    """A certificate for names and addresses, and perhaps URIs."""
    validity = Validity.of(-0.01 if is_expired else _DAYS)
    return ca.issue(
        CertificateHolder("", common_name, hosts, tuple(uris)), Validity(validity.begins, ends or validity.ends)
    )


def server_context(
    certificate: KeyPair, clients: CertificateAuthority | None = None, *, wants: ssl.VerifyMode = ssl.CERT_NONE
) -> ssl.SSLContext:
    """Of a server that shows ``certificate``; ``clients``: the CA of those it wants one of."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _show(context, certificate)
    if clients is not None:
        _trust(context, clients)
    context.verify_mode = wants
    return context


def client_context(trusted: Sequence[CertificateAuthority], certificate: KeyPair | None = None) -> ssl.SSLContext:
    """As a client makes it whose settings name the CAs ``trusted``; it shows ``certificate``, be that good or not."""
    with TemporaryDirectory() as directory:
        cas = Path(directory) / "ca.pem"
        cas.write_bytes(b"".join(ca.pair.certificate for ca in trusted))
        context = TlsFiles(TlsPaths(ca_files=(cas,))).as_client()
    if certificate is not None:
        _show(context, certificate)
    return context


def written(directory: Path, certificate: KeyPair, *trusted: CertificateAuthority) -> TlsPaths:
    """The files of one process, as its settings name them."""
    directory.mkdir(exist_ok=True)
    trusts = b"".join(ca.pair.certificate for ca in trusted)
    write_whole(directory, {"cert.pem": certificate.certificate, "key.pem": certificate.key, "ca.pem": trusts})
    return TlsPaths(directory / "cert.pem", directory / "key.pem", (directory / "ca.pem",))


def _trust(context: ssl.SSLContext, ca: CertificateAuthority) -> None:
    context.load_verify_locations(cadata=ca.pair.certificate.decode())


def _show(context: ssl.SSLContext, certificate: KeyPair) -> None:
    # The library takes them from files alone.
    with TemporaryDirectory() as directory:
        paths = written(Path(directory), certificate)
        assert paths.cert_file is not None
        context.load_cert_chain(paths.cert_file, paths.key_file)
