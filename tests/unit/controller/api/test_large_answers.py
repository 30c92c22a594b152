"""JSON that is made in pieces: byte for byte what one call makes, and no call of it is long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from quorate.controller.api import content
from quorate.controller.api.content import is_large, json_in_pieces
from quorate.controller.api.resources import BrokersReply, TopicReply
from quorate.controller.http.handlers.views import broker_replies, topic_reply
from quorate.controller.reads.image_counts import count_image
from tests.unit.controller.small_cluster import SmallCluster

LARGE = 400


@pytest.fixture(scope="module")
def cluster() -> SmallCluster:
    cluster = SmallCluster(3)
    cluster.create("many", *([0, 1, 2] for _ in range(LARGE)))
    cluster.create("few", [0, 1], [1, 2])
    cluster.heartbeat(2, want_fence=True)
    return cluster


def topic(cluster: SmallCluster, name: str) -> TopicReply:
    return topic_reply(cluster.image, name, has_configs=True)


def replies(cluster: SmallCluster) -> Iterator[BaseModel]:
    """Lists of models, models in models, bytes as text, nulls, and nothing at all."""
    yield topic(cluster, "many")
    yield topic(cluster, "few")
    brokers = broker_replies(cluster.image, {}, 7, count_image(cluster.image, cluster.config))
    yield BrokersReply(brokers=brokers)
    yield BrokersReply(brokers=[])
    yield brokers[0]


def test_pieces_are_what_one_call_makes(cluster: SmallCluster) -> None:
    for reply in replies(cluster):
        assert json_in_pieces(reply) == reply.model_dump_json().encode()


def test_pieces_of_a_topic_are_its_partitions(cluster: SmallCluster) -> None:
    reply = topic(cluster, "many")
    for one in (reply, of_topics([reply, reply])):
        longest = max(map(len, content._json_pieces(one)))
        assert json_in_pieces(one) == one.model_dump_json().encode()
        assert longest < 20 * len(reply.model_dump_json()) / LARGE


def test_answer_is_large_by_the_models_in_it(cluster: SmallCluster) -> None:
    assert is_large(topic(cluster, "many"))
    assert not is_large(topic(cluster, "few"))
    brokers = broker_replies(cluster.image, {}, 7, count_image(cluster.image, cluster.config))
    assert is_large(BrokersReply(brokers=brokers * 100))
    assert is_large(of_topics([topic(cluster, "few")] * 100))


def of_topics(topics: list[TopicReply]) -> BaseModel:
    class Topics(BaseModel):
        topics: list[TopicReply]

    return Topics(topics=topics)
