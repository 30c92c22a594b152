"""Ids of the vectors' symbolic names, and back.

Directories (``d<broker>.<k>``) and incarnations (``<broker>-<n>``) get ids that sort as the numbers in them do. Topics
are called ``t0``, ``t1``, … in the order in which they were created.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, UUID_BYTES, Uuid

_RESERVED: Final = {
    "UNASSIGNED": DIRECTORY_UNASSIGNED,
    "LOST": DIRECTORY_LOST,
    "MIGRATING": DIRECTORY_MIGRATING,
}
_NUMBERED: Final = re.compile(r"(d?)(\d+)[.-](\d+)")
_TOPIC: Final = re.compile(r"t(\d+)")
#: First byte of an id, so that kinds never meet. Below 0x80: Kafka compares ids as signed numbers.
_DIRECTORY_KIND, _INCARNATION_KIND, _TOPIC_KIND, _NO_TOPIC_KIND = 1, 2, 3, 4


def _numbered(kind: int, first: int, second: int) -> Uuid:
    return bytes([kind]) + first.to_bytes(7, "big") + (second + 1).to_bytes(8, "big")


class Names:
    """Names of one vector."""

    def __init__(self) -> None:
        self._ids: dict[str, Uuid] = dict(_RESERVED)
        self._names: dict[Uuid, str] = {id_: name for name, id_ in _RESERVED.items()}
        self._made = 0
        self._topics = 0

    def id(self, name: str) -> Uuid:
        """The id of a directory or an incarnation."""
        known = self._ids.get(name)
        if known is None:
            matched = _NUMBERED.fullmatch(name)
            known = blake2b(name.encode(), digest_size=UUID_BYTES).digest()
            if matched is not None:
                kind = _DIRECTORY_KIND if matched[1] else _INCARNATION_KIND
                known = _numbered(kind, int(matched[2]), int(matched[3]))
            self._enter(name, known)
        return known

    def name(self, id_: Uuid) -> str:
        """The name that an id stands for."""
        return self._names[id_]

    def topic_id(self, name: str) -> Uuid:
        """The id of a topic; one that never was has an id of its own, which is no topic's."""
        known = self._ids.get(name)
        if known is None:
            matched = _TOPIC.fullmatch(name)
            known = _numbered(_NO_TOPIC_KIND, 0, int(matched[1]) if matched else 0)
            self._names[known] = name
        return known

    def new_topic_id(self) -> Uuid:
        """An id for the controller to take; it has no name until its topic is created."""
        self._made += 1
        return _numbered(_TOPIC_KIND, 0, self._made)

    def topic_created(self, id_: Uuid) -> None:
        """The log has this topic: give it its name."""
        self._enter(f"t{self._topics}", id_)
        self._topics += 1

    def _enter(self, name: str, id_: Uuid) -> None:
        self._ids[name] = id_
        self._names[id_] = name
