"""Certificates: JSON documents with a seal, an Ed25519 signature or a plain digest, and how they are verified.

What is sealed are the bytes of the document without its seal, as canonical JSON: keys sorted, no spaces, UTF-8.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from quorate.pipeline.errors import PipelineError

#: What signs a certificate.
SigningKey: TypeAlias = Ed25519PrivateKey

_SEAL: Final = "seal"


class BadKey(PipelineError):
    """A file that should hold an Ed25519 key does not."""


class BadCertificate(PipelineError):
    """A certificate that cannot be believed."""


def sealed(document: Mapping[str, Any], key: SigningKey | None) -> dict[str, Any]:
    """The document with its seal: signed where there is a key, else with a digest, which tells damage but not fraud."""
    data = _canonical(document)
    seal = {"sha256": hashlib.sha256(data).hexdigest()}
    if key is not None:
        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        seal |= {"ed25519": b64encode(key.sign(data)).decode(), "public_key": b64encode(public).decode()}
    return {**document, _SEAL: seal}


def verify(path: Path, public_key: Path | None) -> dict[str, Any]:
    """The document of a certificate whose seal holds.

    Args:
        public_key: PEM file of the key that must have signed it; None = any key, or none.

    Raises:
        BadCertificate: it is none, has been changed, or is not signed as it must be. BadKey: the key's file.
    """
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        seal = document.pop(_SEAL)
        digest, signature, signer = (seal.get(name) for name in ("sha256", "ed25519", "public_key"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadCertificate(f"{path}: this is no certificate ({error!r}); give one that audit wrote") from error
    data = _canonical(document)
    if digest != hashlib.sha256(data).hexdigest():
        raise BadCertificate(f"{path}: the document has been changed since it was sealed; run the audit again")
    if public_key is not None:
        wanted = b64encode(_public_key(public_key).public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
        if signer != wanted:
            by = "not signed" if signer is None else "signed with another key"
            raise BadCertificate(f"{path}: it is {by}, not with that of {public_key}; do not believe it")
    if signature is not None:
        _check(path, data, signature, signer)
    return {**document, _SEAL: seal}


def load_signing_key(path: Path) -> SigningKey:
    """The private key in a PEM file without a password.

    Raises:
        BadKey: there is none.
    """
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise BadKey(f"{path}: {error.strerror}; {_MAKING}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKey(f"{path}: holds no private key in PEM without a password; {_MAKING}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"{path}: holds a key of another kind than Ed25519; {_MAKING}")
    return key


_MAKING: Final = "make one with openssl genpkey -algorithm ed25519"


def _public_key(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise BadKey(f"{path}: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadKey(f"{path}: holds no public key in PEM; openssl pkey -in KEY -pubout writes one") from error
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey(f"{path}: holds a key of another kind than Ed25519")
    return key


def _check(path: Path, data: bytes, signature: Any, signer: Any) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(signer)).verify(b64decode(signature), data)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise BadCertificate(f"{path}: the signature is not that of this document; do not believe it") from error


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
