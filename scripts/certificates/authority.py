"""A certificate authority in memory: made, read, and what it issues. ECDSA with the curve P-256 and SHA-256."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quorate.scripts.certificates.holders import CertificateError, CertificateHolder, checked_cluster

_SCHEME: Final = "quorate://"
#: A machine whose clock is behind takes what is new, too.
_CLOCKS_DIFFER: Final = timedelta(hours=1)
#: Of a CA's number, in the name by which it is told from the one before it.
_TOLD_BY: Final = 8


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when, in UTC."""

    begins: datetime
    ends: datetime

    @classmethod
    def of(cls, days: float) -> Self:
        """From now on."""
        now = datetime.now(UTC).replace(microsecond=0)
        return cls(now - _CLOCKS_DIFFER, now + timedelta(days=days))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """The CA of one cluster. Its certificate names that in a URI, ``quorate://CLUSTER_ID/ca``."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key
        #: The cluster whose nodes it may name.
        self.cluster_id = _cluster_of(certificate)

    @classmethod
    def make(cls, cluster_id: str, validity: Validity) -> Self:
        """A new one.

        Raises:
            CertificateError: it is no cluster id.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        number = x509.random_serial_number()
        name = f"quorate-ca-{number:0{_TOLD_BY}x}"[: len("quorate-ca-") + _TOLD_BY]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        uri = x509.UniformResourceIdentifier(f"{_SCHEME}{checked_cluster(cluster_id)}/ca")
        builder = (
            _builder(subject, subject, key.public_key(), number, validity)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectAlternativeName([uri]), critical=False)
        )
        return cls(builder.sign(key, SHA256()), key)

    @classmethod
    def of(cls, certificates: Iterable[x509.Certificate], key: ec.EllipticCurvePrivateKey) -> Self:
        """That of these which a key is of.

        Raises:
            CertificateError: there is none, or it is not made by ``make``.
        """
        for certificate in certificates:
            if certificate.public_key() == key.public_key():
                return cls(certificate, key)
        raise CertificateError("the key is that of none of the CAs")

    def issue(self, holder: CertificateHolder, validity: Validity) -> KeyPair:
        """A certificate with a new key. It does not outlive the CA.

        Raises:
            CertificateError: the CA has expired.
        """
        ca_ends = self.certificate.not_valid_after_utc
        if ca_ends <= datetime.now(UTC):
            raise CertificateError(f"the CA has expired at {ca_ends:%Y-%m-%dT%H:%M:%SZ}: make a new one: renew ca")
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, holder.common_name)])
        bounded = Validity(validity.begins, min(validity.ends, ca_ends))
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if holder.hosts else [])]
        builder = (
            _builder(subject, self.certificate.subject, key.public_key(), x509.random_serial_number(), bounded)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(identifier, critical=False)
        )
        names = [*map(_host_name, holder.hosts), *map(x509.UniformResourceIdentifier, holder.uris)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return KeyPair(pem_of([builder.sign(self._key, SHA256())]), _pem(key))

    @property
    def pair(self) -> KeyPair:
        """Its own certificate and key."""
        return KeyPair(pem_of([self.certificate]), _pem(self._key))


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a file.

    Raises:
        CertificateError: there is none.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise CertificateError("it holds no certificate in PEM") from None


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """A key as ``CertificateAuthority`` makes them.

    Raises:
        CertificateError: it is another, or none.
    """
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise CertificateError("it holds no key in PEM, or one with a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("it holds a key of another kind than ECDSA")
    return key


def pem_of(certificates: Iterable[x509.Certificate]) -> bytes:
    """Certificates as they stand in one file."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def was_issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether a CA signed it."""
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether others may be issued by it."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def holder_of(name: str, certificate: x509.Certificate) -> CertificateHolder:
    """Whoever has a certificate that was issued by ``CertificateAuthority``.

    Raises:
        CertificateError: it was not.
    """
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(found) != 1:
        raise CertificateError("its subject has no common name: it was not issued here")
    return CertificateHolder(name, str(found[0].value), host_names(certificate), uri_names(certificate))


def host_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Names and addresses among its alternative names."""
    names = _alternative_names(certificate)
    return tuple(str(name.value) for name in names if isinstance(name, x509.DNSName | x509.IPAddress))


def uri_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """URIs among its alternative names."""
    return tuple(_alternative_names(certificate).get_values_for_type(x509.UniformResourceIdentifier))


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])


def _cluster_of(certificate: x509.Certificate) -> str:
    if not is_authority(certificate):
        raise CertificateError("the certificate is not that of a CA")
    for uri in uri_names(certificate):
        cluster_id, _, what = uri.removeprefix(_SCHEME).partition("/")
        if what == "ca":
            return checked_cluster(cluster_id)
    raise CertificateError(f"the CA names no cluster by a URI {_SCHEME}CLUSTER_ID/ca: quorate certs init makes one")


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, number: int, validity: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key, number, validity.begins, validity.ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )  # fmt: skip


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
