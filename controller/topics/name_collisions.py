"""Topics whose names look the same as another where names become metric names, found without a look at every topic."""

from __future__ import annotations

from typing import Final

from quorate.controller.protocol.topic_names import has_collision_chars, unified
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.maps.persistent_map import PersistentMap


class _Looks:
    """The names of one version of the topics by how they look; it follows from version to version.

    A memo only: answers do not depend on which version was asked about before.
    """

    def __init__(self) -> None:
        self._topics: PersistentMap[str, Topic] = PersistentMap()
        #: Ascending names that look like this; only such as have a character that could collide.
        self._names: dict[str, tuple[str, ...]] = {}

    def find(self, topics: PersistentMap[str, Topic], name: str) -> str | None:
        if topics is not self._topics:
            self._follow(topics)
        names = self._names.get(unified(name))
        return names[0] if names else None

    def _follow(self, topics: PersistentMap[str, Topic]) -> None:
        updated, removed = topics.changes_since(self._topics)
        for name in filter(has_collision_chars, removed):
            look = unified(name)
            left = tuple(other for other in self._names[look] if other != name)
            if left:
                self._names[look] = left
            else:
                del self._names[look]
        for name in filter(has_collision_chars, updated):
            look = unified(name)
            others = self._names.get(look)
            self._names[look] = tuple(sorted({*others, name})) if others else (name,)
        self._topics = topics


_LOOKS: Final = _Looks()


def colliding_topic(topics: PersistentMap[str, Topic], name: str) -> str | None:
    """The first topic, by name, that looks like ``name``; None if none does.

    Args:
        topics: of an image, by name.
    """
    return _LOOKS.find(topics, name) if has_collision_chars(name) else None
