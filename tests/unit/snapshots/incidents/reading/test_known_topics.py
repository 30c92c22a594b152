"""Names of topics as records change them, against maps that hold every topic."""

from __future__ import annotations

import random

import pytest

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import TopicRecord
from quorate.snapshots.incidents.reading.known_topics import KnownTopics
from tests.unit.broker.images import cluster_image, replayed, uuid

IDS = [uuid(number) for number in range(6)]
NAMES = [f"t{number}" for number in range(4)]


@pytest.mark.parametrize("seed", range(20))
def test_names_are_those_of_maps_of_all_topics(seed: int) -> None:
    rng = random.Random(seed)
    names: dict[Uuid, str] = dict(zip(IDS[:3], NAMES, strict=False))
    start = replayed(cluster_image([1], []), *(TopicRecord(name, topic_id) for topic_id, name in names.items()))
    topics, ids, of_start = KnownTopics(start.topics), {name: topic_id for topic_id, name in names.items()}, set(names)
    for _ in range(60):
        topic_id, name = rng.choice(IDS), rng.choice(NAMES)
        if rng.random() < 0.5 and topic_id not in names and name not in ids:
            topics.add(topic_id, name)
            names[topic_id], ids[name] = name, topic_id
        else:
            topics.remove(topic_id)
            of_start.discard(topic_id)
            ids.pop(names.pop(topic_id, ""), None)
        assert [topics.name_of(one) for one in IDS] == [names.get(one) for one in IDS]
        assert [topics.id_of(one) for one in NAMES] == [ids.get(one) for one in NAMES]
        assert [topics.is_of_start(one) for one in IDS] == [one in of_start for one in IDS]
