"""The names of topics, as records of a log change those of an image: few of many, so the others are never walked."""

from __future__ import annotations

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image_parts import TopicsImage


class KnownTopics:
    """Up to one record."""

    def __init__(self, start: TopicsImage) -> None:
        self._start = start
        #: What came since, by id and by name; None: it was removed.
        self._names: dict[Uuid, str | None] = {}
        self._ids: dict[str, Uuid | None] = {}
        #: Topics of the start that were removed.
        self._gone: set[Uuid] = set()

    def add(self, topic_id: Uuid, name: str) -> None:
        """Note that there is such a topic now."""
        self._names[topic_id] = name
        self._ids[name] = topic_id

    def remove(self, topic_id: Uuid) -> None:
        """Note that there is none now, if there was one."""
        name = self.name_of(topic_id)
        if name is not None:
            self._names[topic_id] = self._ids[name] = None
        self._gone.add(topic_id)

    def name_of(self, topic_id: Uuid) -> str | None:
        """The name of a topic that is there; None: there is none."""
        if topic_id in self._names:
            return self._names[topic_id]
        topic = self._start.by_id.get(topic_id)
        return None if topic is None else topic.name

    def id_of(self, name: str) -> Uuid | None:
        """The id of a topic that is there; None: there is none."""
        if name in self._ids:
            return self._ids[name]
        topic = self._start.by_name.get(name)
        return None if topic is None else topic.id

    def is_of_start(self, topic_id: Uuid) -> bool:
        """Whether a topic was there at the start, and ever since."""
        return topic_id not in self._gone and topic_id in self._start.by_id
