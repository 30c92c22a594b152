"""Host names known to the system's name service: a lookup that no decision may make itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

#: For all names of one request together; what is not known by then counts as unknown.
_LOOKUP_SECONDS: Final = 2.0


async def resolvable(names: Collection[str]) -> frozenset[str]:
    """Those of the names that are hosts."""
    known: set[str] = set()
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            for name in names:
                if await _is_host(name):
                    known.add(name)
    except TimeoutError:
        pass
    return frozenset(known)


async def _is_host(name: str) -> bool:
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, ValueError):  # ValueError: a name that cannot even be asked for
        return False
    return True
