"""Handlers for searches. An image is a value: they search it on another thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from quorate.controller.api.models import Nothing
from quorate.controller.api.resources import PartitionsReply, TopicsReply, TopicSummary
from quorate.controller.http.handlers.common import read_image
from quorate.controller.http.handlers.views import topic_configs
from quorate.controller.http.routing import Call
from quorate.controller.permissions.rights import Rights
from quorate.controller.permissions.topics import shown_topics
from quorate.controller.protocol.acls import AclOperation
from quorate.controller.reads.partition_search import PartitionSearch, TopicFound
from quorate.controller.reads.search_models import PartitionListParameters, TopicListParameters
from quorate.controller.reads.topic_description import describe_rows
from quorate.snapshots.image.image import MetadataImage


async def list_topics(call: Call, parameters: TopicListParameters, body: Nothing) -> TopicsReply:
    image = await read_image(call, parameters)
    return await call.on_thread(partial(topics_reply, call.node.search, image, parameters, call.rights))


async def list_partitions(call: Call, parameters: PartitionListParameters, body: Nothing) -> PartitionsReply:
    image = await read_image(call, parameters)
    return await call.on_thread(partial(partitions_reply, call.node.search, image, parameters, call.rights))


def topics_reply(
    search: PartitionSearch, image: MetadataImage, parameters: TopicListParameters, rights: Rights
) -> TopicsReply:
    """A page of the topics that the caller may see, by name."""
    # Which topics have configs is told by who is asked for: whoever may not see configs is not told that either.
    asked: tuple[AclOperation, ...] = ("DESCRIBE", "DESCRIBE_CONFIGS") if parameters.with_overrides else ("DESCRIBE",)
    found = search.topics(
        image,
        parameters.wanted,
        parameters.after,
        parameters.limit,
        has_configs=parameters.with_overrides,
        is_shown=shown_topics(rights, *asked),
    )
    factors = _replication_factors(image, found.topics)
    return TopicsReply(
        state_offset=image.provenance.end_offset,
        matching=found.matching,
        topics=[_topic_summary(image, rights, one, factor) for one, factor in zip(found.topics, factors, strict=True)],
        next_after=found.topics[-1].topic.name if found.has_more else None,
        shown_to=rights.shown_to,
    )


def _topic_summary(image: MetadataImage, rights: Rights, found: TopicFound, replication_factor: int) -> TopicSummary:
    has_configs = rights.may("DESCRIBE_CONFIGS", "TOPIC", found.topic.name)
    return TopicSummary(
        name=found.topic.name,
        topic_id=found.topic.id,
        partitions=len(found.rows),
        replication_factor=replication_factor,
        matching_partitions=found.matching,
        configs=topic_configs(image, found.topic.name) if has_configs else [],
    )


def _replication_factors(image: MetadataImage, found: Sequence[TopicFound]) -> list[int]:
    """Replicas of the first partition of each; 0 where there is none."""
    first_rows = np.array([one.rows.start for one in found if one.rows], np.int64)
    counts = iter(image.partitions.column(first_rows, "replica_counts").tolist())
    return [next(counts) if one.rows else 0 for one in found]


def partitions_reply(
    search: PartitionSearch, image: MetadataImage, parameters: PartitionListParameters, rights: Rights
) -> PartitionsReply:
    """A page of the partitions that the caller may see, by topic name and number."""
    is_shown = shown_topics(rights, "DESCRIBE")
    found = search.partitions(image, parameters.wanted, parameters.after_partition, parameters.limit, is_shown=is_shown)
    topics = describe_rows(image, found.rows)
    return PartitionsReply(
        state_offset=image.provenance.end_offset,
        matching=found.matching,
        topics=topics,
        next_after=f"{topics[-1].name}-{topics[-1].partitions[-1].partition_index}" if found.has_more else None,
        shown_to=rights.shown_to,
    )
