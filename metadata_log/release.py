"""The release of Quorate that runs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

#: Of sources that nobody has installed.
NOT_INSTALLED: Final = "unknown"


@cache
def release() -> str:
    """Its version, as `0.1.0`: that of the installed distribution, whose description is read once: 2 to 5 ms."""
    try:
        return version("quorate")
    except PackageNotFoundError:
        return NOT_INSTALLED
