"""Handlers for configs and features."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quorate.controller.api.models import ConfigParameters, Nothing, ReadParameters
from quorate.controller.configs.broker_config_checks import refused_by_brokers, with_refused
from quorate.controller.http.handlers.common import is_linearizable
from quorate.controller.http.routing import Call
from quorate.controller.permissions.configs import refused_changes, refused_description
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
)
from quorate.controller.protocol.features import DescribeFeaturesResponse
from quorate.controller.protocol.outcomes import not_refused

B = TypeVar("B", IncrementalAlterConfigsRequest, AlterConfigsRequest)


async def describe_configs(call: Call, parameters: ConfigParameters, body: Nothing) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=parameters.resource_type, resource_name=parameters.resource_name, configuration_keys=None
    )
    refused = refused_description(call.rights, resource)
    if refused is not None:
        return refused
    response = await call.node.operations.describe_configs(
        DescribeConfigsRequest(resources=[resource]), is_linearizable=is_linearizable(parameters)
    )
    return response.results[0]


async def incremental_alter_configs(
    call: Call, parameters: Nothing, body: IncrementalAlterConfigsRequest
) -> AlterConfigsResponse:
    return await _as_a_broker(call, body, call.node.operations.incremental_alter_configs)


async def alter_configs(call: Call, parameters: Nothing, body: AlterConfigsRequest) -> AlterConfigsResponse:
    return await _as_a_broker(call, body, call.node.operations.alter_configs)


async def _as_a_broker(
    call: Call, body: B, alter: Callable[[B, float], Awaitable[AlterConfigsResponse]]
) -> AlterConfigsResponse:
    """Refuse here what the caller may not do, and all that a broker would not pass on; ask for the rest."""
    refused = refused_by_brokers(body.resources) | refused_changes(call.rights, body.resources)
    if not refused:
        return await alter(body, call.write_timeout_ms)
    rest = body.model_copy(update={"resources": not_refused(body.resources, refused)})
    answered = await alter(rest, call.write_timeout_ms) if rest.resources else None
    return with_refused([] if answered is None else answered.responses, refused)


async def describe_features(call: Call, parameters: ReadParameters, body: Nothing) -> DescribeFeaturesResponse:
    return await call.node.operations.describe_features(is_linearizable=is_linearizable(parameters))
