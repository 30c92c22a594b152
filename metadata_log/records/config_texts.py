"""Values of configs stand in records as texts: what a text says, as Java reads it."""

from __future__ import annotations

import re
from typing import Final

# Compiled when first used: a controller should start fast.
_WHOLE: Final = r"[+-]?\d+"


def as_whole(text: str, bits: int = 32) -> int | None:
    """A whole number of so many bits (sign included), as Java reads it; None if it is none."""
    # Python refuses texts of some thousands of digits; so many are never in range.
    if not re.fullmatch(_WHOLE, text) or len(text.lstrip("+-0")) > bits:
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def is_true(text: str) -> bool:
    """Whether a flag is set."""
    return text.strip().lower() == "true"
