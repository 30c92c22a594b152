"""The rows of the route table that answer operators' questions."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.answer_models import CanStopParameters, CanStopReply
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import answers
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.permission import OnCluster

ANSWER_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/answers/can-stop",
        "Whether brokers or controllers may be stopped, and what would happen if they were",
        answers.can_be_stopped,
        tag="answers",
        permission=OnCluster("DESCRIBE"),
        parameters=CanStopParameters,
        body=Nothing,
        reply=CanStopReply,
        serving=Serving.VIEW,
        errors=(400, 404),
    ),
)
