"""A change that anybody can ask of an empty cluster, and see."""

from quorate.controller.protocol.configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest

CHANGE = IncrementalAlterConfigsRequest(
    resources=[
        AlterConfigsResource(
            resource_type="BROKER", resource_name="", configs=[AlterableConfig(name="message.max.bytes", value="4711")]
        )
    ]
)
