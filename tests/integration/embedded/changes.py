"""What tests of embedded clusters have in common: a change to ask for, and a look at a port."""

import socket
from urllib.parse import urlsplit

from quorate.controller.protocol.configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest

CHANGE = IncrementalAlterConfigsRequest(
    resources=[
        AlterConfigsResource(
            resource_type="BROKER", resource_name="", configs=[AlterableConfig(name="message.max.bytes", value="4711")]
        )
    ]
)


def is_listened_to(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname, address.port)) == 0
