"""Registrations of controllers (KIP-919): what a feature upgrade asks all of them, and where tools find them.

A registration is replaced by the next one of the same id and never removed, as in Kafka.
"""

from __future__ import annotations

from typing import Final

from quorate.controller.configs.features import SUPPORTED
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import CONTROLLER_REGISTRATION_LEVEL
from quorate.controller.protocol.brokers import Listener, SupportedFeature
from quorate.controller.protocol.controllers import ControllerRegistrationRequest, ControllerRegistrationResponse
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import MetadataImage

#: Kafka's security protocols are numbered 0 to 3; its nodes stop at a record with another one.
_SECURITY_PROTOCOLS: Final = range(4)


def own_registration(node_id: int, incarnation_id: Uuid, listeners: list[Listener]) -> ControllerRegistrationRequest:
    """The registration of a controller with this software."""
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        listeners=listeners,
        features=[
            SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(SUPPORTED.items())
        ],
    )


def is_wanting(image: MetadataImage, own: ControllerRegistrationRequest) -> bool:
    """Whether a controller still has to register: the level knows registrations, and its own is not in the image."""
    if image.features.metadata_version < CONTROLLER_REGISTRATION_LEVEL:
        return False
    present = image.cluster.controllers.get(own.controller_id)
    return present is None or present.incarnation_id != own.incarnation_id


def decide_register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Register a controller, in place of what was known of its id.

    Raises:
        ApiError: UNSUPPORTED_VERSION below level 15; INVALID_REGISTRATION.
    """
    if image.features.metadata_version < CONTROLLER_REGISTRATION_LEVEL:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
    _check(request)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=tuple(
            ControllerEndpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ),
        features=tuple(
            ControllerFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        ),
    )
    return Decision([VersionedRecord(record, 0)], ControllerRegistrationResponse())


def _check(request: ControllerRegistrationRequest) -> None:
    names = [listener.name for listener in request.listeners]
    features = [feature.name for feature in request.features]
    unknown = [one.security_protocol for one in request.listeners if one.security_protocol not in _SECURITY_PROTOCOLS]
    problem = None
    if len(set(names)) != len(names):
        problem = "Two listeners have the same name."
    elif unknown:
        problem = f"Unknown security protocol {unknown[0]}: they are numbered 0 to 3."
    elif len(set(features)) != len(features):
        problem = "A feature is listed twice."
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, problem)
