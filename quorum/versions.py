"""Versions of what nodes say to each other, so that neighbours of two releases agree while one takes the other's place.

Two nodes speak the newest version that both know. A release knows several: it adds one when a message or a field comes,
and drops the oldest when no release that anybody upgrades from needs it.

Version 4 has all that agreement needs; its hellos were the first to say from which version to which a node speaks.
Version 5 brought ``Commit``, without which a follower learns of a commit with the next ``Append``, and
``Append.acknowledged``, without which those that are left behind do not know who of them has most.
"""

from __future__ import annotations

from typing import Final

OLDEST_VERSION: Final = 4
NEWEST_VERSION: Final = 5


def common_version(newest: int, peer_oldest: int, peer_newest: int) -> int | None:
    """The newest version that a node and its peer both know; None: there is none.

    Args:
        newest: that the node speaks; its oldest is ``OLDEST_VERSION``. peer_oldest, peer_newest: what the peer says.
    """
    common = min(newest, peer_newest)
    return common if common >= max(OLDEST_VERSION, peer_oldest) else None
