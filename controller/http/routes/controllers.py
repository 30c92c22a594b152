"""The rows of the route table that are about controllers as nodes."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.content import JSON_OR_MSGPACK
from quorate.controller.api.models import Nothing, ReadParameters
from quorate.controller.api.resources import ControllersReply
from quorate.controller.http.handlers import controllers
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import AsNode, OnCluster

CONTROLLER_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/controllers",
        "The controllers, and what they have registered",
        controllers.list_controllers,
        tag="controllers",
        permission=OnCluster("DESCRIBE"),
        parameters=ReadParameters,
        body=Nothing,
        reply=ControllersReply,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/controller-rpc/register",
        "A controller registers (Kafka's ControllerRegistration)",
        Operations.register_controller,
        tag="controllers",
        permission=AsNode("controller", "controller_id"),
        media=JSON_OR_MSGPACK,
        # Listeners and features, a hundred of each.
        takes_lists=True,
        errors=(422, 429),
    ),
)
