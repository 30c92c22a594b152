"""Collisions of topic names are those of the topics asked about, whichever were asked about before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.protocol.topic_names import has_collision_chars, unified
from quorate.controller.topics.name_collisions import colliding_topic
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.maps.persistent_map import PersistentMap
from tests.unit.controller.small_cluster import uuid

_NAMES = st.text("a._", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "back"]), _NAMES, _NAMES), max_size=40))
@settings(max_examples=100, deadline=None)
def test_collisions_are_found_in_every_version(steps: list[tuple[str, str, str]]) -> None:
    versions: list[PersistentMap[str, Topic]] = [PersistentMap()]
    for number, (kind, name, asked) in enumerate(steps):
        if kind == "put":
            versions.append(versions[-1].put(name, Topic(name, uuid(3, number))))
        elif kind == "remove":
            versions.append(versions[-1].without(name))
        else:  # a head that was lost: the version before the newest holds again
            versions.append(versions[max(0, len(versions) - 2)])
        topics = versions[-1]
        alike = [other for other in topics if has_collision_chars(asked) and has_collision_chars(other)]
        expected = min((other for other in alike if unified(other) == unified(asked)), default=None)
        assert colliding_topic(topics, asked) == expected
