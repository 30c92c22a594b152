"""Uuids as Kafka's text, a column at once."""

from __future__ import annotations

import string
from typing import Final

import numpy as np
import pyarrow as pa

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.ids import UUID_BYTES

_ALPHABET: Final = np.frombuffer(
    (string.ascii_letters[26:] + string.ascii_lowercase + string.digits + "-_").encode(), np.uint8
)
#: Two characters for each 12 bits.
_PAIRS: Final = np.stack([np.repeat(_ALPHABET, 64), np.tile(_ALPHABET, 64)], axis=1).copy().view("V2")[:, 0]
_CHARS: Final = 22
_UNITS: Final = _CHARS // 2


def uuid_texts(uuids: ByteColumn) -> pa.StringArray:
    """Uuids, uint8[n, 16], as their url-safe base64 without padding."""
    count = len(uuids)
    padded = np.zeros((count, UUID_BYTES + 1), np.uint16)
    padded[:, :UUID_BYTES] = uuids
    units = np.empty((count, _UNITS), np.uint16)
    # Three bytes are two units of 12 bits.
    first, second, third = padded[:, 0:16:3], padded[:, 1:17:3], padded[:, 2:17:3]
    units[:, 0::2] = first << 4 | second >> 4
    units[:, 1::2] = (second[:, : third.shape[1]] & 15) << 8 | third
    texts = _PAIRS[units]
    ends = np.arange(0, (count + 1) * _CHARS, _CHARS, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(texts)))
