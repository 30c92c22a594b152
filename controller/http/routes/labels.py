"""The rows of the route table that are about labels."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.label_models import LabelParameters
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import labels as label_handlers
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import OnCluster
from quorate.controller.protocol.labels import DescribeLabelsResponse

LABEL_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/labels",
        "Labels that a filter asks for, page by page",
        label_handlers.list_labels,
        tag="labels",
        permission=OnCluster("DESCRIBE_CONFIGS"),
        parameters=LabelParameters,
        body=Nothing,
        reply=DescribeLabelsResponse,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/labels",
        "Set and remove labels, all of them if all conditions hold, or none",
        Operations.alter_labels,
        tag="labels",
        permission=OnCluster("ALTER_CONFIGS"),
        takes_lists=True,
        errors=(404, 409, 422, 429),
    ),
)
