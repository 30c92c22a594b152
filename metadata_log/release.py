"""The release of Quorate that runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

#: Of sources that nobody has installed.
NOT_INSTALLED: Final = "unknown"


def release() -> str:
    """Its version, as `0.1.0`: that of the installed distribution."""
    try:
        return version("quorate")
    except PackageNotFoundError:
        return NOT_INSTALLED
