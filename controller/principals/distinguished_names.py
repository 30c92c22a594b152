"""The distinguished name of a certificate's subject as text: RFC 2253, letter for letter as Java writes it.

``X500Principal.getName()`` of JDK 17, which Kafka gives to its mapping rules. The last part of the name comes first. Of
keywords there are nine; other types are dotted numbers, with the value's DER in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final

from quorate.controller.principals.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    BadDer,
    DerValue,
    der_value,
    der_values,
    object_identifier,
)

#: Of a subject's DER.
NAME_BYTES_MAX: Final = 8_192
#: Of a certificate's: TLS itself allows no more than some times this.
CERTIFICATE_BYTES_MAX: Final = 65_536

_KEYWORDS: Final[Mapping[str, str]] = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString; others are written in hexadecimal.
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_ESCAPED: Final = str.maketrans({**{char: f"\\{char}" for char in ',=+<>#;"\\'}, "\0": "\\00"})
#: Blanks as far as the ends of a value are concerned.
_BLANKS: Final = " \r"
#: In a certificate: the version, which the oldest ones do not have.
_VERSION_TAG: Final = 0xA0
#: Before the subject: serial number, algorithm, issuer, validity.
_BEFORE_SUBJECT: Final = 4


def certificate_name(certificate: bytes) -> str:
    """The subject of a certificate, from the certificate's DER.

    Raises:
        BadDer: it is none, or longer than ``CERTIFICATE_BYTES_MAX``; its signature is not looked at.
    """
    if len(certificate) > CERTIFICATE_BYTES_MAX:
        raise BadDer(f"a certificate of {len(certificate)} bytes; at most {CERTIFICATE_BYTES_MAX} can be")
    parts = der_values(der_value(certificate, SEQUENCE).content)
    signed = next(parts, None)
    if signed is None or signed.tag != SEQUENCE:
        raise BadDer("a certificate without content")
    fields = (field for field in der_values(signed.content) if field.tag != _VERSION_TAG)
    subject = next(islice(fields, _BEFORE_SUBJECT, None), None)
    if subject is None:
        raise BadDer("a certificate without a subject")
    return name_text(subject.encoded)


def name_text(name: bytes) -> str:
    """A distinguished name, from its DER.

    Raises:
        BadDer: it is none, or longer than ``NAME_BYTES_MAX``.
    """
    if len(name) > NAME_BYTES_MAX:
        raise BadDer(f"a distinguished name of {len(name)} bytes; at most {NAME_BYTES_MAX} can be")
    parts = []
    for part in der_values(der_value(name, SEQUENCE).content):
        if part.tag != SET:
            raise BadDer(f"a part of a distinguished name with tag 0x{part.tag:02x}, not 0x{SET:02x}")
        parts.append("+".join(map(_attribute, der_values(part.content))))
    return ",".join(reversed(parts))


def _attribute(attribute: DerValue) -> str:
    found = list(der_values(attribute.content))
    if attribute.tag != SEQUENCE or len(found) != 2 or found[0].tag != OBJECT_IDENTIFIER:
        raise BadDer("a part of a distinguished name that is no type with one value")
    type_, value = object_identifier(found[0].content), found[1]
    keyword = _KEYWORDS.get(type_)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or type_}=#{value.encoded.hex()}"
    # Java reads the bytes as UTF-8 whatever kind of string they are.
    return f"{keyword}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    text = text.translate(_ESCAPED)
    bare = text.strip(_BLANKS)
    begin = text.index(bare) if bare else len(text)
    blanks_before, blanks_after = text[:begin], text[begin + len(bare) :]
    return f"{_each_escaped(blanks_before)}{bare}{_each_escaped(blanks_after)}"


def _each_escaped(blanks: str) -> str:
    return "".join(f"\\{blank}" for blank in blanks)
