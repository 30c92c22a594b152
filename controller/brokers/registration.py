"""Broker registration and its end (the first half of Kafka's ``ClusterControlManager``).

Every function reads an image and soft state and returns records; the controller changes the soft state when the
records are on their way, by the ``apply_`` function that stands beside each decision.
"""

from __future__ import annotations

from typing import Final

from quorate.controller.brokers.heartbeats import BrokerHeartbeats
from quorate.controller.configs.labels import labels_gone_with_broker
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import (
    CORDONED_DIRECTORIES_LEVEL,
    DIRECTORIES_LEVEL,
    ELR_LEVEL,
    METADATA_VERSION_FEATURE,
    register_broker_version,
)
from quorate.controller.partitions.mass_changes import IsrChanges, Part, records_or_slices
from quorate.controller.protocol import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import is_reserved_uuid, uuid_text
from quorate.metadata_log.records.records import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration

#: First version of the registration request that says whether the last shutdown was clean.
_PREVIOUS_EPOCH_API_VERSION: Final = 3


def decide_register_broker(
    image: MetadataImage,
    config: ControllerConfig,
    heartbeats: BrokerHeartbeats,
    request: BrokerRegistrationRequest,
    next_offset: int,
    now_ms: float,
) -> Decision[BrokerRegistrationResponse]:
    """Register a broker. A new incarnation starts fenced and out of every ISR; the same one keeps epoch and flags.

    Raises:
        ApiError: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, INVALID_REGISTRATION, UNSUPPORTED_VERSION,
            BROKER_ID_NOT_REGISTERED (a broker that still migrates from ZooKeeper).
    """
    present = image.cluster.brokers.get(request.broker_id)
    _check_registration(image, config, heartbeats, request, present, now_ms)
    is_same = present is not None and present.incarnation_id == request.incarnation_id
    parts: list[Part] = []
    if not is_same:  # Also where none is registered: an unregistered broker can have stayed in ELRs.
        is_clean = (
            present is not None
            and request.api_version >= _PREVIOUS_EPOCH_API_VERSION
            and request.previous_broker_epoch == present.epoch
        )
        parts.append(_changes_without(image, request.broker_id, is_unclean=not is_clean))
    epoch = present.epoch if present is not None and is_same else next_offset
    parts.append(_registration_record(image, request, present if is_same else None, epoch))
    records, slices = records_or_slices(image, config, parts)
    reply = BrokerRegistrationResponse(broker_epoch=epoch)
    return Decision(records, reply, is_internal=True, slices=slices, changed_broker=request.broker_id)


def apply_registration(
    heartbeats: BrokerHeartbeats,
    image: MetadataImage,
    request: BrokerRegistrationRequest,
    decision: Decision[BrokerRegistrationResponse],
    end_offset: int,
) -> None:
    """Soft state after a registration; ``image`` as it was before, ``end_offset`` exclusive, after its records."""
    present = image.cluster.brokers.get(request.broker_id)
    is_same = present is not None and present.incarnation_id == request.incarnation_id
    is_fenced = present is None or not is_same or present.is_fenced
    heartbeats.register(request.broker_id, is_fenced, registration_offset=end_offset - 1)


def _check_registration(
    image: MetadataImage,
    config: ControllerConfig,
    heartbeats: BrokerHeartbeats,
    request: BrokerRegistrationRequest,
    present: BrokerRegistration | None,
    now_ms: float,
) -> None:
    if request.cluster_id != config.cluster_id:
        message = f"Expected cluster ID {config.cluster_id}, but got cluster ID {request.cluster_id}"
        raise ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    is_other = present is not None and present.incarnation_id != request.incarnation_id
    if present is not None and is_other and heartbeats.has_session(present.id, present.epoch, now_ms):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        message = "Controller does not support registering ZK brokers."
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if image.features.metadata_version >= DIRECTORIES_LEVEL:
        _check_directories(image, request)
    _check_features(image, request)


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    problem = None
    if not request.log_dirs:
        problem = "No directories specified in request"
    elif any(is_reserved_uuid(directory) for directory in request.log_dirs):
        problem = "Reserved directory ID in request"
    elif len(set(request.log_dirs)) != len(request.log_dirs):
        problem = "Duplicate directory ID in request"
    else:
        wanted = set(request.log_dirs)
        for broker in image.cluster.brokers.values():
            taken = wanted.intersection(broker.directories)
            if broker.id != request.broker_id and taken:
                problem = f"Broker {broker.id} is already registered with directory {uuid_text(min(taken))}"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REGISTRATION, problem)


def _check_features(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    """Every finalised level must be one that the broker supports; a feature it does not list it supports at 0."""
    ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    if METADATA_VERSION_FEATURE not in ranges:
        message = f"Request features do not contain '{METADATA_VERSION_FEATURE}'"
        raise ApiError(ErrorCode.INVALID_REGISTRATION, message)
    levels = dict(image.features.levels.items())
    if image.kraft.version:
        levels["kraft.version"] = image.kraft.version
    for name, level in sorted(levels.items()):
        low, high = ranges.get(name, (0, 0))
        if level != 0 and not low <= level <= high:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive.",
            )


def _changes_without(image: MetadataImage, broker_id: int, *, is_unclean: bool) -> IsrChanges:
    """Take a broker out of every ISR; also out of every ELR if it may have lost data."""
    table = image.partitions
    loses_elr = is_unclean and image.features.metadata_version >= ELR_LEVEL
    rows = table.rows_with_isr_or_elr(broker_id) if loses_elr else table.rows_with_isr(broker_id)
    return IsrChanges(rows, broker_to_remove=broker_id, is_unclean_shutdown=is_unclean)


def _registration_record(
    image: MetadataImage, request: BrokerRegistrationRequest, same: BrokerRegistration | None, epoch: int
) -> VersionedRecord:
    level = image.features.metadata_version
    has_cordoned = level >= CORDONED_DIRECTORIES_LEVEL and request.cordoned_log_dirs is not None
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            BrokerEndpoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in request.listeners
        ),
        features=tuple(
            BrokerFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
            for feature in request.features
        ),
        rack=request.rack,
        fenced=same.is_fenced if same is not None else True,
        in_controlled_shutdown=same.in_controlled_shutdown if same is not None else False,
        log_dirs=tuple(request.log_dirs) if level >= DIRECTORIES_LEVEL else (),
        cordoned_log_dirs=tuple(request.cordoned_log_dirs or ()) if has_cordoned else None,
    )
    return VersionedRecord(record, register_broker_version(level))


def decide_unregister_broker(
    image: MetadataImage, config: ControllerConfig, request: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    """Remove a registration: the broker leaves every ISR first. Like a fenced one it may stay in an ELR.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED.
    """
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    rows = image.partitions.rows_with_isr_or_elr(broker.id)
    record = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    labels = labels_gone_with_broker(image, broker.id)
    parts: list[Part] = [IsrChanges(rows, broker_to_remove=broker.id), *labels, VersionedRecord(record, 0)]
    records, slices = records_or_slices(image, config, parts)
    reply = UnregisterBrokerResponse()
    return Decision(records, reply, is_internal=True, slices=slices, changed_broker=request.broker_id)


def apply_unregistration(heartbeats: BrokerHeartbeats, request: UnregisterBrokerRequest) -> None:
    """Soft state after ``decide_unregister_broker``."""
    heartbeats.forget(request.broker_id)
