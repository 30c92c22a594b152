"""Certificates that name nodes of a cluster, made in memory by the CAs of tests, and written as a node's files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from quorate.controller.api.tls_files import TlsPaths


def node_files(
    directory: Path,
    ca: trustme.CA | None,
    *uris: str,
    trusts: tuple[trustme.CA, ...],
    address: str = "127.0.0.1",
    is_expired: bool = False,
) -> TlsPaths:
    """Written for one node. ``ca``: None where the certificate is its own issuer."""
    names = [x509.IPAddress(ip_address(address)), *(x509.UniformResourceIdentifier(uri) for uri in uris)]
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "node")])
    now = datetime.now(UTC)
    issuer = subject if ca is None else x509.load_pem_x509_certificate(ca.cert_pem.bytes()).subject
    signs = key if ca is None else load_pem_private_key(ca.private_key_pem.bytes(), None)
    assert isinstance(signs, ec.EllipticCurvePrivateKey)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=-1 if is_expired else 30))
        .add_extension(x509.SubjectAlternativeName(names), False)
        .sign(signs, SHA256())
    )
    directory.mkdir(exist_ok=True)
    paths = TlsPaths(directory / "cert.pem", directory / "key.pem", (directory / "ca.pem",))
    (directory / "key.pem").touch(0o600)
    (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (directory / "ca.pem").write_bytes(b"".join(one.cert_pem.bytes() for one in trusts))
    (directory / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    return paths
