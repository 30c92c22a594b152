"""The URIs among the alternative names of a certificate's subject (RFC 5280, 4.2.1.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.controller.principals.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    BadDer,
    DerValue,
    der_value,
    der_values,
    object_identifier,
)
from quorate.controller.principals.distinguished_names import CERTIFICATE_BYTES_MAX

_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_EXTENSIONS_TAG: Final = 0xA3
_OCTETS: Final = 0x04
_URI_TAG: Final = 0x86


def certificate_uris(certificate: bytes) -> list[str]:
    """The URIs, from the certificate's DER, in their order; its signature is not looked at.

    Raises:
        BadDer: it is none, or longer than ``CERTIFICATE_BYTES_MAX``.
    """
    if len(certificate) > CERTIFICATE_BYTES_MAX:
        raise BadDer(f"a certificate of {len(certificate)} bytes; at most {CERTIFICATE_BYTES_MAX} can be")
    signed = next(der_values(der_value(certificate, SEQUENCE).content), None)
    if signed is None:
        raise BadDer("a certificate without content")
    uris: list[str] = []
    for field in der_values(signed.content):
        if field.tag == _EXTENSIONS_TAG:
            for extension in der_values(der_value(field.content, SEQUENCE).content):
                uris += _uris_of(extension)
    return uris


def _uris_of(extension: DerValue) -> Iterator[str]:
    # Its type, whether it is critical (which may be left out), and its value.
    parts = list(der_values(extension.content))
    if len(parts) < 2 or parts[0].tag != OBJECT_IDENTIFIER or parts[-1].tag != _OCTETS:
        raise BadDer("an extension that is no type with a value")
    if object_identifier(parts[0].content) != _ALTERNATIVE_NAMES:
        return
    for name in der_values(der_value(parts[-1].content, SEQUENCE).content):
        if name.tag == _URI_TAG:
            yield name.content.decode("ascii", "replace")
