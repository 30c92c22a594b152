"""Operations of scenarios about configs and features: their requests to the controller, its answers to them."""

from __future__ import annotations

from quorate.controller.protocol.configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from quorate.controller.protocol.features import FeatureUpdate, UpdateFeaturesRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.conformance_runner.kinds.cluster_requests import TIMEOUT_MS
from quorate.scripts.conformance_runner.kinds.stage import ScenarioStage
from quorate.scripts.conformance_runner.record_form import Form


async def incremental_alter_configs(stage: ScenarioStage, op: Form) -> list[Form]:
    """One outcome a resource."""
    resources = [
        AlterConfigsResource(
            resource_type=resource["type"],
            resource_name=resource["name"],
            configs=[
                AlterableConfig(name=change["name"], config_operation=change["op"], value=change["value"])
                for change in resource["ops"]
            ],
        )
        for resource in op["resources"]
    ]
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=op["validate_only"])
    response = await stage.operations.incremental_alter_configs(request, TIMEOUT_MS)
    return [
        {"type": result.resource_type, "name": result.resource_name, "error": result.error_code.name}
        for result in response.responses
    ]


async def update_features(stage: ScenarioStage, op: Form) -> Form:
    """One outcome for all: what refuses one feature refuses the request."""
    updates = [
        FeatureUpdate(feature=update["name"], max_version_level=update["level"], upgrade_type=update["type"])
        for update in op["features"]
    ]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=op["validate_only"])
    try:
        await stage.operations.update_features(request, TIMEOUT_MS)
    except ApiError as refusal:
        return {"error": refusal.code.name}
    return {"error": ErrorCode.NONE.name}
