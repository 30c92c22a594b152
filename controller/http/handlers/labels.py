"""Handlers for labels."""

from __future__ import annotations

from quorate.controller.api.label_models import LabelParameters
from quorate.controller.api.models import Nothing
from quorate.controller.configs.labels import LabelFilter
from quorate.controller.http.handlers.common import is_linearizable
from quorate.controller.http.routing import Call
from quorate.controller.protocol.labels import DescribeLabelsResponse


async def describe_labels(call: Call, parameters: LabelParameters, body: Nothing) -> DescribeLabelsResponse:
    wanted = LabelFilter(parameters.resource, parameters.kind, parameters.topic, parameters.namespace)
    return await call.node.operations.describe_labels(
        wanted, parameters.after, parameters.limit, is_linearizable=is_linearizable(parameters)
    )
