"""Handlers for labels."""

from __future__ import annotations

from functools import partial

from quorate.controller.api.label_models import LabelParameters
from quorate.controller.api.models import Nothing
from quorate.controller.configs.label_rules import check_resource_form
from quorate.controller.configs.labels import LabelFilter, describe_labels
from quorate.controller.http.handlers.common import read_image
from quorate.controller.http.routing import Call
from quorate.controller.protocol.labels import DescribeLabelsResponse


async def list_labels(call: Call, parameters: LabelParameters, body: Nothing) -> DescribeLabelsResponse:
    if parameters.resource is not None:
        check_resource_form(parameters.resource)
    image = await read_image(call, parameters)
    wanted = LabelFilter(parameters.resource, parameters.kind, parameters.topic, parameters.namespace)
    page = (image, wanted, parameters.after, parameters.limit)
    if wanted.resource is not None:
        return describe_labels(*page)
    # All labels are looked at, and an image is a value: that is work for another thread.
    return await call.on_thread(partial(describe_labels, *page))
