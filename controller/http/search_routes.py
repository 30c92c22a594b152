"""The rows of the route table that search topics and partitions."""

from __future__ import annotations

from typing import Final

from quorate.controller.http import search_handlers
from quorate.controller.http.models import Nothing
from quorate.controller.http.resources import PartitionsReply, TopicsReply
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.http.search_models import PartitionListParameters, TopicListParameters

SEARCH_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/topics",
        "Topics by name, a page at a time, all or those that fit a filter",
        search_handlers.list_topics,
        tag="topics",
        parameters=TopicListParameters,
        body=Nothing,
        reply=TopicsReply,
        serving=Serving.CONSISTENT,
    ),
    route(
        "GET",
        "/v1/partitions",
        "Partitions by topic and number, a page at a time, all or those that fit a filter",
        search_handlers.list_partitions,
        tag="partitions",
        parameters=PartitionListParameters,
        body=Nothing,
        reply=PartitionsReply,
        serving=Serving.CONSISTENT,
    ),
)
