"""Super users: principals that may do everything, whatever the ACLs say."""

from __future__ import annotations

from typing import Final

#: Blanks as Java's ``String.trim`` knows them.
_BLANKS: Final = "".join(map(chr, range(0x21)))


def super_users(text: str) -> frozenset[str]:
    """Principals out of Kafka's ``super.users``, such as ``User:ana;User:CN=admin,O=example``.

    They are separated by semicolons, for names may hold commas, and compared as text: ``User:*`` is no wildcard here.

    Raises:
        ValueError: one of them has no type.
    """
    found = frozenset(entry for part in text.split(";") if (entry := part.strip(_BLANKS)))
    for entry in sorted(found):
        if ":" not in entry:
            raise ValueError(f"super user {entry[:100]!r} has no type; write it as User:NAME")
    return found
