"""Names of requests: the client's own, or one made for it. One rule for the HTTP edges of controllers and brokers."""

from __future__ import annotations

import itertools
import re
import secrets
from typing import Final

#: Names of requests differ within a process by their number, and between processes by chance.
_NUMBERS: Final = itertools.count()
_PROCESS: Final = secrets.token_hex(4)
#: Printable, and short enough for a line of the log.
REQUEST_ID_PATTERN: Final = r"[A-Za-z0-9._:-]{1,64}"
_FORM: Final = re.compile(REQUEST_ID_PATTERN)


def request_id_of(given: str) -> str:
    """Return the name of a request: ``given``, the client's ``X-Request-Id``, if it is a proper one, else a new one."""
    return given if _FORM.fullmatch(given) else f"{_PROCESS}{next(_NUMBERS):08x}"
