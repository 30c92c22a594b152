"""The parts of a way back that those who look for it share: the states that they compare, and what they find."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic


class RequestStates(NamedTuple):
    """The states before and after a request, and the newest."""

    before: MetadataImage
    after: MetadataImage
    now: MetadataImage

    @property
    def created(self) -> list[Topic]:
        """Topics that the request made, by name."""
        return _only_in(self.after, self.before)

    @property
    def deleted(self) -> list[Topic]:
        """Topics that the request deleted, by name."""
        return _only_in(self.before, self.after)

    @property
    def own_topics(self) -> set[str]:
        """Names of both: their configs and labels come and go with them."""
        return {topic.name for topic in (*self.created, *self.deleted)}


def _only_in(image: MetadataImage, other: MetadataImage) -> list[Topic]:
    updated, _ = image.topics.by_id.changes_since(other.topics.by_id)
    ids: set[Uuid] = {topic_id for topic_id in updated if topic_id not in other.topics.by_id}
    return sorted(image.topics.by_id[topic_id] for topic_id in ids)


@dataclass(slots=True)
class FoundWays:
    """The ways back that were found so far: see ``way_back.WayBack``."""

    changes: list[PlannedChange] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    since: list[str] = field(default_factory=list)
