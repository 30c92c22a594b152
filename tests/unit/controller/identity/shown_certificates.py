"""Certificates as clients show them: made in memory, and signed by themselves, for nobody here looks at signatures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

_KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(common_name: str, *uris: str) -> bytes:
    """The DER of a certificate with a subject, and perhaps URIs behind a host name."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    named = [x509.DNSName("node.example"), *map(x509.UniformResourceIdentifier, uris)]
    builder = (
        x509.CertificateBuilder(name, name, _KEY.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if uris:
        builder = builder.add_extension(x509.SubjectAlternativeName(named), critical=False)
    made: bytes = builder.sign(_KEY, SHA256()).public_bytes(Encoding.DER)
    return made
