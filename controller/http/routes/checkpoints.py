"""The rows of the route table that are about the checkpoints of one controller."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.checkpoint_models import CheckpointsReply, TakenCheckpointReply
from quorate.controller.api.models import Nothing
from quorate.controller.http.handlers import checkpoints as checkpoint_handlers
from quorate.controller.http.routing import Route, Serving, route
from quorate.controller.permissions.permission import OnCluster

CHECKPOINT_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/checkpoints",
        "The checkpoints of the node that is asked",
        checkpoint_handlers.list_checkpoints,
        tag="checkpoints",
        permission=OnCluster("DESCRIBE"),
        parameters=Nothing,
        body=Nothing,
        reply=CheckpointsReply,
        serving=Serving.HERE,
    ),
    route(
        "POST",
        "/v1/checkpoints",
        "Take a checkpoint now, on the node that is asked; answered when it is durable",
        checkpoint_handlers.take_checkpoint,
        tag="checkpoints",
        permission=OnCluster("ALTER"),
        parameters=Nothing,
        body=Nothing,
        reply=TakenCheckpointReply,
        serving=Serving.HERE,
        errors=(404, 409, 429),
    ),
)
