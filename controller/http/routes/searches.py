"""The rows of the route table that search topics and partitions."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import Nothing
from quorate.controller.api.resources import PartitionsReply, TopicsReply
from quorate.controller.http.handlers import searches
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.permission import ByItem
from quorate.controller.reads.search_models import PartitionListParameters, TopicListParameters

SEARCH_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/topics",
        "Topics by name, a page at a time, all or those that fit a filter",
        searches.list_topics,
        tag="topics",
        permission=ByItem("DESCRIBE on each Topic, others are left out; DESCRIBE_CONFIGS on it for its configs"),
        parameters=TopicListParameters,
        body=Nothing,
        reply=TopicsReply,
        serving=Serving.CONSISTENT,
    ),
    route(
        "GET",
        "/v1/partitions",
        "Partitions by topic and number, a page at a time, all or those that fit a filter",
        searches.list_partitions,
        tag="partitions",
        permission=ByItem("DESCRIBE on each Topic, others are left out"),
        parameters=PartitionListParameters,
        body=Nothing,
        reply=PartitionsReply,
        serving=Serving.CONSISTENT,
    ),
)
