"""A small log with one of each secret that a log may hold, and a config that is none."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Final

from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import (
    ConfigRecord,
    FeatureLevelRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)

_KEYS: Final = (b"a salt of hers  ", b"a stored key of hers", b"a server key of hers")
#: As commands would print them: a config of a broker that is one, one that nobody knows, what authenticates a user.
SECRETS: Final = ("keystore-password", "custom-value", *(b64encode(key).decode() for key in _KEYS))
_TOPIC: Final = 2
_BROKER: Final = 4


def write_secret_records(directory: Path) -> Path:
    """Write it into a directory, and return its file."""
    salt, stored, server = _KEYS
    records: list[tuple[Record, int]] = [
        (FeatureLevelRecord("metadata.version", 29), 0),
        (TopicRecord("orders", bytes(range(1, 17))), 0),
        (ConfigRecord(_TOPIC, "orders", "retention.ms", "1000"), 0),
        (ConfigRecord(_TOPIC, "orders", "of.nobody.known", SECRETS[1]), 0),
        (ConfigRecord(_BROKER, "", "ssl.keystore.password", SECRETS[0]), 0),
        (UserScramCredentialRecord("ana", 1, salt, stored, server, 4096), 0),
    ]
    file = directory / f"{0:020d}.log"
    file.write_bytes(place_batch(data_batch(records, 1_700_000_000_000), 0, 1))
    return file
