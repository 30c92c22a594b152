"""Names of certificates: out of whole certificates, and bytes that are none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from quorate.controller.principals.der import BadDer, object_identifier
from quorate.controller.principals.distinguished_names import (
    CERTIFICATE_BYTES_MAX,
    NAME_BYTES_MAX,
    certificate_name,
    name_text,
)


def der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    length = len(content)
    head = bytes([length]) if length < 128 else bytes([0x82]) + length.to_bytes(2, "big")
    return bytes([tag]) + head + content


def part(type_: str, value: bytes, tag: int = 0x0C) -> bytes:
    return der(0x31, der(0x30, der(6, bytes.fromhex(type_)), der(tag, value)))


COMMON_NAME, ORGANIZATION = "550403", "55040a"


def test_last_part_comes_first_and_characters_are_escaped() -> None:
    name = der(0x30, part(ORGANIZATION, b"a,b"), part(COMMON_NAME, b" \xc3\xa9 "))

    assert name_text(name) == "CN=\\ é\\ ,O=a\\,b"
    assert name_text(der(0x30)) == ""
    assert name_text(der(0x30, part(COMMON_NAME, b"  "))) == "CN=\\ \\ "


def test_value_that_is_no_text_is_hexadecimal() -> None:
    assert name_text(der(0x30, part(COMMON_NAME, b"\0\0\0a", 0x1C))) == "CN=#1c0400000061"
    assert name_text(der(0x30, part("550404", b"a"))) == "2.5.4.4=#0c0161"


def test_subject_of_a_certificate_is_found_behind_its_issuer() -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    parts = (
        (NameOID.ORGANIZATION_NAME, "x,y"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "ops"),
        (NameOID.COMMON_NAME, "ana"),
    )
    subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
    issuer = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "the authority")])
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), 1, now, now)
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.DER)

    assert certificate_name(certificate) == "CN=ana,OU=ops,O=x\\,y"


def test_numbers_of_types_are_dotted() -> None:
    assert object_identifier(bytes.fromhex("2a864886f70d010901")) == "1.2.840.113549.1.9.1"
    assert object_identifier(bytes.fromhex("8837")) == "2.999"
    for broken in (b"", b"\x2a\x86"):
        with pytest.raises(BadDer, match="breaks off"):
            object_identifier(broken)


def test_bytes_that_are_no_name_are_refused() -> None:
    name = der(0x30, part(COMMON_NAME, b"ana"))
    for end in range(len(name)):
        with pytest.raises(BadDer):
            name_text(name[:end])
    for broken in (
        name + b"\0",
        der(0x31),
        der(0x30, der(0x30)),
        der(0x30, der(0x31, der(0x30))),
        b"\x30\x84" + bytes(8),
    ):
        with pytest.raises(BadDer):
            name_text(broken)
    with pytest.raises(BadDer, match="at most 8192"):
        name_text(bytes(NAME_BYTES_MAX + 1))


def test_bytes_that_are_no_certificate_are_refused() -> None:
    for broken in (b"", der(0x30), der(0x30, der(0x31)), der(0x30, der(0x30, der(2), der(0x30)))):
        with pytest.raises(BadDer):
            certificate_name(broken)
    with pytest.raises(BadDer, match="at most 65536"):
        certificate_name(bytes(CERTIFICATE_BYTES_MAX + 1))


@pytest.mark.parametrize("depth", range(1, 5))
def test_any_changed_byte_of_a_name_gives_a_name_or_a_refusal(depth: int) -> None:
    name = bytearray(der(0x30, part(ORGANIZATION, b"a"), part(COMMON_NAME, b"b", 0x1E)))
    for at, value in enumerate(name):
        for flipped in (value ^ 1 << depth, 0xFF, 0):
            changed = bytes(name[:at]) + bytes([flipped]) + bytes(name[at + 1 :])
            try:
                assert isinstance(name_text(changed), str)
            except BadDer:
                continue
