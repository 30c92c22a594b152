"""Handlers for controllers."""

from __future__ import annotations

from quorate.controller.api.models import Nothing, ReadParameters
from quorate.controller.api.resources import ControllerReply, ControllersReply
from quorate.controller.http.handlers.common import is_linearizable
from quorate.controller.http.routing import Call
from quorate.controller.protocol.brokers import Listener, SupportedFeature
from quorate.snapshots.table.cluster import ControllerRegistration


async def list_controllers(call: Call, parameters: ReadParameters, body: Nothing) -> ControllersReply:
    node = call.node
    image = await node.controller.append_read_event(lambda image: image, is_linearizable=is_linearizable(parameters))
    registered = image.cluster.controllers
    return ControllersReply(
        state_offset=image.provenance.end_offset,
        controllers=[
            _controller_reply(id_, registered.get(id_), is_voter=id_ in node.peers)
            for id_ in sorted({*registered, *node.peers})
        ],
    )


def _controller_reply(id_: int, registration: ControllerRegistration | None, *, is_voter: bool) -> ControllerReply:
    listeners = () if registration is None else registration.listeners
    features = () if registration is None else registration.supported_features
    return ControllerReply(
        id=id_,
        is_voter=is_voter,
        is_registered=registration is not None,
        incarnation_id=None if registration is None else registration.incarnation_id,
        listeners=[
            Listener(name=at.name, host=at.host, port=at.port, security_protocol=at.security_protocol)
            for at in sorted(listeners, key=lambda listener: listener.name)
        ],
        features=[
            SupportedFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in sorted(features, key=lambda feature: feature.name)
        ],
    )
