"""Certificates: what is sealed can be verified, and nothing that was changed since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from quorate.pipeline.certificate import BadCertificate, BadKey, load_signing_key, sealed, verify

DOCUMENT = {"verdict": "passed", "state": {"offset": 5, "digest": "ünïcode"}}


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def public_key(key: Ed25519PrivateKey, path: Path) -> Path:
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def test_signed_certificate_is_believed_with_its_key_and_with_no_other(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    file = write(tmp_path / "c.json", sealed(DOCUMENT, key))

    assert verify(file, None)["verdict"] == "passed"
    assert verify(file, public_key(key, tmp_path / "own.pem"))["state"]["offset"] == 5
    with pytest.raises(BadCertificate, match="signed with another key"):
        verify(file, public_key(Ed25519PrivateKey.generate(), tmp_path / "other.pem"))


def test_changed_document_is_not_believed(tmp_path: Path) -> None:
    for key in (None, Ed25519PrivateKey.generate()):
        document = sealed(DOCUMENT, key) | {"verdict": "failed"}
        with pytest.raises(BadCertificate, match="changed since it was sealed"):
            verify(write(tmp_path / "c.json", document), None)


def test_digest_of_a_changed_document_does_not_make_the_signature_its_own(tmp_path: Path) -> None:
    signed, forged = sealed(DOCUMENT, Ed25519PrivateKey.generate()), sealed({"verdict": "failed"}, None)
    forged["seal"] = {**signed["seal"], "sha256": forged["seal"]["sha256"]}

    with pytest.raises(BadCertificate, match="the signature is not that of this document"):
        verify(write(tmp_path / "c.json", forged), None)


def test_unsigned_certificate_is_not_believed_where_a_key_is_wanted(tmp_path: Path) -> None:
    file = write(tmp_path / "c.json", sealed(DOCUMENT, None))

    assert "ed25519" not in verify(file, None)["seal"]
    with pytest.raises(BadCertificate, match="not signed"):
        verify(file, public_key(Ed25519PrivateKey.generate(), tmp_path / "k.pem"))


@pytest.mark.parametrize("content", ["nothing", "[]", "{}", '{"seal": 3}'])
def test_other_files_are_no_certificates(tmp_path: Path, content: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(BadCertificate, match=r"no certificate|changed"):
        verify(file, None)


def test_only_an_ed25519_key_signs(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    with pytest.raises(BadKey, match="No such file"):
        load_signing_key(file)
    file.write_bytes(b"nothing")
    with pytest.raises(BadKey, match="no private key"):
        load_signing_key(file)
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(other)
    with pytest.raises(BadKey, match="another kind"):
        load_signing_key(file)
    own = Ed25519PrivateKey.generate()
    file.write_bytes(own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert load_signing_key(file).public_key() == own.public_key()
