"""Handlers for topics: each item is asked about for itself, and what may not be done is not passed on."""

from __future__ import annotations

from functools import partial

from quorate.controller.api.models import Nothing, TopicParameters, TopicReadParameters, ViewParameters
from quorate.controller.api.resources import TopicReply
from quorate.controller.http.handlers.common import read_image
from quorate.controller.http.handlers.views import topic_reply
from quorate.controller.http.routing import Call
from quorate.controller.permissions.topics import (
    check_deletion_by_name,
    check_described,
    refused_creations,
    refused_deletions,
    refused_growth,
    shown_deletions,
    with_shown_configs,
)
from quorate.controller.protocol import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse
from quorate.controller.protocol.outcomes import in_their_places, not_refused


async def get_topic(call: Call, parameters: TopicReadParameters, body: Nothing) -> TopicReply:
    check_described(call.rights, parameters.name)
    has_configs = call.rights.may("DESCRIBE_CONFIGS", "TOPIC", parameters.name)
    image = await read_image(call, parameters)
    # A topic may have many thousands of partitions; the image is a value, which another thread may read.
    return await call.on_thread(partial(topic_reply, image, parameters.name, has_configs=has_configs))


async def create_topics(call: Call, parameters: Nothing, body: CreateTopicsRequest) -> CreateTopicsResponse:
    refused = refused_creations(call.rights, body)
    rest = body.model_copy(update={"topics": not_refused(body.topics, refused)}) if refused else body
    if refused and not rest.topics:
        return CreateTopicsResponse(topics=list(refused.values()))
    answered = await call.node.operations.create_topics(rest, call.write_timeout_ms)
    shown = with_shown_configs(call.rights, answered)
    return shown.model_copy(update={"topics": in_their_places(shown.topics, refused)})


async def create_partitions(call: Call, parameters: Nothing, body: CreatePartitionsRequest) -> CreatePartitionsResponse:
    refused = refused_growth(call.rights, body)
    rest = body.model_copy(update={"topics": not_refused(body.topics, refused)}) if refused else body
    if refused and not rest.topics:
        return CreatePartitionsResponse(results=list(refused.values()))
    answered = await call.node.operations.create_partitions(rest, call.write_timeout_ms)
    return answered.model_copy(update={"results": in_their_places(answered.results, refused)})


async def delete_topic(call: Call, parameters: TopicParameters, body: Nothing) -> DeleteTopicsResponse:
    call.node.operations.check_topic_deletion()
    check_deletion_by_name(call.rights, call.node.controller.stable, parameters.name)
    return await call.node.operations.delete_topic(parameters.name, call.write_timeout_ms)


async def delete_topics(call: Call, parameters: Nothing, body: DeleteTopicsRequest) -> DeleteTopicsResponse:
    call.node.operations.check_topic_deletion()
    refused = refused_deletions(call.rights, call.node.controller.stable, body)
    rest = body.model_copy(update={"topic_ids": not_refused(body.topic_ids, refused)}) if refused else body
    if refused and not rest.topic_ids:
        return DeleteTopicsResponse(responses=list(refused.values()))
    answered = await call.node.operations.delete_topics(rest, call.write_timeout_ms)
    return answered.model_copy(update={"responses": in_their_places(answered.responses, refused)})


async def list_topic_deletions(call: Call, parameters: ViewParameters, body: Nothing) -> DescribeTopicDeletionsResponse:
    return shown_deletions(call.rights, call.node.operations.describe_topic_deletions())
