"""Protections that a cluster is measured with and without: TLS, ACLs, quotas."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from itertools import product


class Safeguard(Enum):
    """One of them; the value is its name for people."""

    TLS = "TLS"
    ACLS = "ACLs"
    QUOTAS = "quotas"


#: All that a cluster is protected by at once; empty: nothing.
Protection = frozenset[Safeguard]
NOTHING = Protection()


def name_of(protection: Protection) -> str:
    """``TLS + ACLs``."""
    return " + ".join(one.value for one in Safeguard if one in protection) or "nothing"


def variants(asked: Collection[Safeguard]) -> tuple[Protection, ...]:
    """The protections to be compared, nothing first: with and without TLS, with and without ACLs, and all of it.

    Quotas go by who asks, so what they cost is looked for where all else is on: once, and not in every combination.
    """
    switched = [one for one in (Safeguard.TLS, Safeguard.ACLS) if one in asked]
    found = [
        Protection(one for one, is_on in zip(switched, choice, strict=True) if is_on)
        for choice in product((False, True), repeat=len(switched))
    ]
    found.sort(key=len)
    if Safeguard.QUOTAS in asked:
        found.append(found[-1] | {Safeguard.QUOTAS})
    return tuple(found)


def base_of(protection: Protection) -> Protection:
    """The protection that another is compared with: nothing at all or, where there are quotas, the same without."""
    return protection - {Safeguard.QUOTAS} if Safeguard.QUOTAS in protection else NOTHING
