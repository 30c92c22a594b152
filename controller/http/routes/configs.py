"""The rows of the route table that are about configs and features."""

from __future__ import annotations

from typing import Final

from quorate.controller.api.models import ConfigParameters, Nothing, ReadParameters
from quorate.controller.http.handlers import configs as config_handlers
from quorate.controller.http.routing import Route, Serving, route, write
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import ByItem, OnCluster
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
)
from quorate.controller.protocol.features import DescribeFeaturesResponse

_ALTERING: Final = "ALTER_CONFIGS on each Topic or Group; on Cluster for any other resource"

CONFIG_ROUTES: Final[tuple[Route, ...]] = (
    route(
        "GET",
        "/v1/configs",
        "The configs of a topic, broker, group or client metrics subscription, and where they come from",
        config_handlers.describe_configs,
        tag="configs",
        permission=ByItem("DESCRIBE_CONFIGS on the Topic or Group; on Cluster for any other resource"),
        parameters=ConfigParameters,
        body=Nothing,
        reply=DescribeConfigsResult,
        serving=Serving.CONSISTENT,
        is_bulk=True,
        errors=(404, 422),
    ),
    route(
        "POST",
        "/v1/configs",
        "Set, delete, append to and take from configs (Kafka's IncrementalAlterConfigs)",
        config_handlers.incremental_alter_configs,
        tag="configs",
        permission=ByItem(_ALTERING),
        parameters=Nothing,
        body=IncrementalAlterConfigsRequest,
        reply=AlterConfigsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(404, 409, 422, 429),
    ),
    route(
        "POST",
        "/v1/configs/replace",
        "Replace all configs of resources (Kafka's AlterConfigs)",
        config_handlers.alter_configs,
        tag="configs",
        permission=ByItem(_ALTERING),
        parameters=Nothing,
        body=AlterConfigsRequest,
        reply=AlterConfigsResponse,
        serving=Serving.ACTIVE,
        is_bulk=True,
        errors=(404, 409, 422, 429),
    ),
    route(
        "GET",
        "/v1/features",
        "Features: the levels that hold, and those that can be led at",
        config_handlers.describe_features,
        tag="features",
        permission=OnCluster("DESCRIBE"),
        parameters=ReadParameters,
        body=Nothing,
        reply=DescribeFeaturesResponse,
        serving=Serving.CONSISTENT,
    ),
    write(
        "/v1/features",
        "Raise or lower feature levels (Kafka's UpdateFeatures)",
        Operations.update_features,
        tag="features",
        permission=OnCluster("ALTER"),
        errors=(409, 429),
    ),
)
