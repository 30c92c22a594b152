"""The row of the route table about deleted topics whose replicas are not all gone."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import Nothing, ViewParameters
from quorate.controller.http.handlers import topics
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.permission import ByItem
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse

DELETION_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/topic-deletions",
        "Deleted topics whose replicas are not all gone, by broker and state, and what they wait for",
        topics.list_topic_deletions,
        tag="topics",
        permission=ByItem("DESCRIBE on each Topic, others are left out"),
        parameters=ViewParameters,
        body=Nothing,
        reply=DescribeTopicDeletionsResponse,
        serving=Serving.VIEW,
    ),
)
