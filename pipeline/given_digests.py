"""Digests that somebody else computed, as `scripts/replay-digests` prints them: one JSON object a line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from quorate.pipeline.errors import BadSetting

#: Each is a state of its own to fold, and its row in the result.
_DIGESTS_MAX: Final = 1_000
_FILE_BYTES_MAX: Final = 1024 * 1024
_OFFSET_MAX: Final = (1 << 43) - 1
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def read_digests(path: Path) -> dict[int, str]:
    """Digest by offset, of a file whose lines have `offset` and `digest`; what else they have is not looked at.

    Raises:
        BadSetting: the file cannot be read, is too long, or a line says something else.
    """
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= _FILE_BYTES_MAX else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadSetting(f"{path}: the digests cannot be read: {reason}") from None
    if size > _FILE_BYTES_MAX:
        raise BadSetting(f"{path}: {size} bytes of digests; at most {_FILE_BYTES_MAX}")
    found: dict[int, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            offset, digest = _entry(line, f"{path}, line {number}")
            if found.setdefault(offset, digest) != digest:
                raise BadSetting(f"{path}, line {number}: another digest for offset {offset} than in a line before")
    if not 0 < len(found) <= _DIGESTS_MAX:
        raise BadSetting(f"{path}: {len(found)} digests; it must have 1 to {_DIGESTS_MAX}")
    return found


def _entry(line: str, where: str) -> tuple[int, str]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise BadSetting(f'{where}: no JSON; a line is {{"offset": N, "digest": "64 hexadecimal digits"}}') from None
    offset, digest = (entry.get(name) if isinstance(entry, dict) else None for name in ("offset", "digest"))
    if not isinstance(offset, int) or isinstance(offset, bool) or not 1 <= offset <= _OFFSET_MAX:
        raise BadSetting(f"{where}: offset {offset!r} is no whole number from 1 to {_OFFSET_MAX}")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise BadSetting(f"{where}: digest {digest!r} is not 64 hexadecimal digits in lower case")
    return offset, digest
