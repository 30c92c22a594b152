"""Identifiers: their types, their text forms and the values that have a meaning of their own.

A uuid is 16 bytes in network order everywhere in the project; text is for people, JSON and HTTP only.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from quorate.metadata_log.errors import InvalidId

#: 16 bytes, most significant first (Kafka's ``Uuid``).
Uuid = bytes

UUID_BYTES: Final = 16
_UUID_TEXT_CHARS: Final = 22

ZERO_UUID: Final[Uuid] = bytes(16)
#: The topic id of ``__cluster_metadata`` (Kafka's ``Uuid.METADATA_TOPIC_ID``).
METADATA_TOPIC_ID: Final[Uuid] = (1).to_bytes(16, "big")

# Reserved directory ids (Kafka's ``DirectoryId``).
DIRECTORY_MIGRATING: Final[Uuid] = ZERO_UUID
DIRECTORY_UNASSIGNED: Final[Uuid] = (1).to_bytes(16, "big")
DIRECTORY_LOST: Final[Uuid] = (2).to_bytes(16, "big")
#: Ids below this value are reserved by Kafka and never given to a real directory, topic or broker.
RESERVED_UUIDS: Final = 100

NO_LEADER: Final = -1


def uuid_text(value: Uuid) -> str:
    """The 22 characters that Kafka prints for a uuid (url-safe base64 without padding)."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """The 16 bytes behind Kafka's text form.

    Raises:
        InvalidId: the text is not 22 characters of url-safe base64.
    """
    if len(text) != _UUID_TEXT_CHARS:
        raise InvalidId(f"{text[:40]!r} is no uuid: it must have {_UUID_TEXT_CHARS} characters")
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidId(f"{text!r} is no uuid: {error}") from error
    if uuid_text(value) != text:
        raise InvalidId(f"{text!r} is no uuid: its last character has bits that mean nothing")
    return value


def is_reserved_uuid(value: Uuid) -> bool:
    """Whether Kafka keeps this id for itself (unassigned, lost, migrating, ... directories)."""
    return int.from_bytes(value, "big") < RESERVED_UUIDS
