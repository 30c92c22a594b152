"""The price of elections that gave partitions a leader who was not in sync: as numbers, as a risk, and in words."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.answers.explain_models import RiskCode
from quorate.controller.api.resources import ElectionsReply
from quorate.controller.engine.head_counters import Elected

#: From the least to the gravest.
RISKS: Final[tuple[RiskCode, ...]] = ("NONE", "LAST_KNOWN_LEADER", "UNCLEAN")


def elections_of(elected: Elected) -> ElectionsReply:
    """The number of each kind."""
    unclean = elected.unclean - elected.last_known
    return ElectionsReply(from_eligible=elected.from_eligible, last_known=elected.last_known, unclean=unclean)


def risk_of(elected: Elected) -> RiskCode:
    """The gravest of them."""
    if elected.unclean > elected.last_known:
        return "UNCLEAN"
    return "LAST_KNOWN_LEADER" if elected.last_known else "NONE"


def how_led(elected: Elected) -> str:
    """Their losses, in words that stand behind "is led again"."""
    parts = []
    if elected.last_known:
        parts.append(f"{elected.last_known:,} by their last known leader: what it had not flushed is lost")
    if elected.unclean > elected.last_known:
        parts.append(f"{elected.unclean - elected.last_known:,} uncleanly: what the new leader had not copied is lost")
    return f" ({'; '.join(parts)})" if parts else ", with all that was acknowledged"
