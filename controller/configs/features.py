"""Feature levels (Kafka's ``FeatureControlManager``): who must support them, what they need, how they may go down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quorate.controller.configs.feature_losses import losses_of
from quorate.controller.configs.resources import ConfigResource
from quorate.controller.configs.topic_configs import MIN_ISR_CONFIG
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import (
    CONTROLLER_REGISTRATION_LEVEL,
    ELR_FEATURE,
    ELR_LEVEL,
    LEVEL_MAX,
    LEVEL_MIN,
    LEVELS_WITH_METADATA_CHANGE,
    METADATA_VERSION_FEATURE,
)
from quorate.controller.protocol.features import (
    DescribedFeature,
    DescribeFeaturesResponse,
    FeatureUpdate,
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.config_texts import as_whole
from quorate.metadata_log.records.records import ConfigRecord, FeatureLevelRecord, NoOpRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE
from quorate.snapshots.table.cluster import BrokerRegistration, ControllerRegistration

KRAFT_VERSION_FEATURE: Final = "kraft.version"

#: Levels that this software can lead at: Kafka 4.3.1's production levels.
SUPPORTED: Final[Mapping[str, tuple[int, int]]] = {
    METADATA_VERSION_FEATURE: (LEVEL_MIN, LEVEL_MAX),
    KRAFT_VERSION_FEATURE: (0, 1),
    ELR_FEATURE: (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
_UNKNOWN: Final = (0, 0)


def level_of(image: MetadataImage, feature: str) -> int:
    """The level that holds; 0 where a feature is off."""
    if feature == KRAFT_VERSION_FEATURE:
        return image.kraft.version
    return image.features.levels.get(feature, 0) or 0


def describe_features(image: MetadataImage) -> DescribeFeaturesResponse:
    """All features that this software knows or the cluster has."""
    names = sorted({*SUPPORTED, *image.features.levels})
    ranges = {name: SUPPORTED.get(name, _UNKNOWN) for name in names}
    return DescribeFeaturesResponse(
        finalized_features_epoch=image.provenance.last_contained_offset,
        features=[
            DescribedFeature(
                feature=name,
                min_supported_version=low,
                max_supported_version=high,
                finalized_version_level=level_of(image, name),
            )
            for name, (low, high) in ranges.items()
        ],
    )


def decide_update_features(
    image: MetadataImage, config: ControllerConfig, request: UpdateFeaturesRequest
) -> Decision[UpdateFeaturesResponse]:
    """Change feature levels, all of them or none. The same level again is written again.

    Raises:
        ApiError: INVALID_UPDATE_VERSION, with what a refused downgrade would lose in its details; INVALID_REQUEST.
    """
    updates = {update.feature: update for update in request.feature_updates}
    if len(updates) != len(request.feature_updates):
        raise ApiError(ErrorCode.INVALID_REQUEST, "A feature is named twice.")
    proposed = {name: level_of(image, name) for name in SUPPORTED}
    proposed |= {name: update.max_version_level for name, update in updates.items()}
    records: list[BatchItem] = []
    results: list[UpdatedFeature] = []
    for update in request.feature_updates:
        records += _update(image, config, update, proposed)
        results.append(_result(image, update))
    if ELR_FEATURE in updates and proposed[ELR_FEATURE] > 0:
        records = [*_one_min_isr(image, config), *records]
    return Decision(() if request.validate_only else records, UpdateFeaturesResponse(results=results))


def _result(image: MetadataImage, update: FeatureUpdate) -> UpdatedFeature:
    return UpdatedFeature(
        feature=update.feature,
        level_before=level_of(image, update.feature),
        level_after=update.max_version_level,
        losses=losses_of(image, update.feature, update.max_version_level),
    )


def _update(
    image: MetadataImage, config: ControllerConfig, update: FeatureUpdate, proposed: Mapping[str, int]
) -> list[BatchItem]:
    name, level, present = update.feature, update.max_version_level, level_of(image, update.feature)
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    reason = next(_objections(image, config, name, level), None)
    if reason is not None:
        raise _invalid(update, reason)
    is_upgrade = update.upgrade_type == "UPGRADE"
    if level < present and is_upgrade:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > present and not is_upgrade:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if name == KRAFT_VERSION_FEATURE:
        return _update_kraft_version(update, present)
    if name == METADATA_VERSION_FEATURE:
        _check_metadata_version(image, update, present)
    elif name not in SUPPORTED:
        raise _invalid(update, f"Feature {name} not found.")
    elif needed := _missing_dependency(name, level, proposed[METADATA_VERSION_FEATURE]):
        raise _invalid(update, f"{name} could not be set to {level} because it depends on {needed}")
    return [VersionedRecord(FeatureLevelRecord(name, level), 0)]


def _missing_dependency(name: str, level: int, metadata_version: int) -> str | None:
    if level >= 1 and metadata_version < LEVEL_MIN:
        return f"{METADATA_VERSION_FEATURE}={LEVEL_MIN} (3.3-IV3)"
    if name == ELR_FEATURE and level >= 1 and metadata_version < ELR_LEVEL:
        return f"{METADATA_VERSION_FEATURE} level {ELR_LEVEL}"
    return None


def _invalid(update: FeatureUpdate, why: str) -> ApiError:
    message = f"Invalid update version {update.max_version_level} for feature {update.feature}. {why}"
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, message)


def _update_kraft_version(update: FeatureUpdate, present: int) -> list[BatchItem]:
    """The quorum's own level, a control record. Differs from Kafka: a running quorum does not raise it."""
    if update.max_version_level < present:
        raise _invalid(update, "Can't downgrade the version of this feature.")
    if update.max_version_level > present:
        raise _invalid(update, "It is a setting of the controllers, quorum.kraft_version.")
    # As in Kafka: a record, so that the answer is one that a majority stands behind.
    return [VersionedRecord(NoOpRecord(), 0)] if update.upgrade_type == "UPGRADE" else []


def _check_metadata_version(image: MetadataImage, update: FeatureUpdate, present: int) -> None:
    """Downwards only while no level in between has changed what is in the log."""
    level = update.max_version_level
    if not any(level < changed <= present for changed in LEVELS_WITH_METADATA_CHANGE):
        return
    if update.upgrade_type == "UNSAFE_DOWNGRADE":
        why = "Unsafe metadata downgrade is not supported in this version."
    else:
        why = "Refusing to perform the requested downgrade because it might delete metadata information."
    losses = [loss.model_dump() for loss in losses_of(image, METADATA_VERSION_FEATURE, level)]
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {present} to {level}. {why}",
        {"losses": losses},
    )


# --- who must support a level ------------------------------------------------------------------------


def _objections(image: MetadataImage, config: ControllerConfig, feature: str, level: int) -> Iterator[str]:
    """The nodes that do not support a level: this controller, then brokers, then other controllers, as they are
    registered.

    Where controllers register, one of the quorum that has not may be of an older version.
    """
    nodes = [(f"Local controller {config.node_id}", SUPPORTED.get(feature, _UNKNOWN))]
    brokers, controllers = image.cluster.brokers, image.cluster.controllers
    nodes += [(f"Broker {id_}", _range(brokers[id_], feature)) for id_ in sorted(brokers)]
    if image.features.metadata_version >= CONTROLLER_REGISTRATION_LEVEL:
        others = sorted(id_ for id_ in controllers if id_ != config.node_id)
        nodes += [(f"Controller {id_}", _range(controllers[id_], feature)) for id_ in others]
    for node, (low, high) in nodes:
        if (low, high) == _UNKNOWN and level != 0:
            yield f"{node} does not support this feature."
        elif not low <= level <= high:
            yield f"{node} only supports versions {low if low == high else f'{low}-{high}'}"
    if image.features.metadata_version >= CONTROLLER_REGISTRATION_LEVEL:
        for id_ in sorted(config.voter_ids - {config.node_id}):
            if id_ not in controllers:
                yield f"controller {id_} has not registered, and may not support this feature"


def _range(node: BrokerRegistration | ControllerRegistration, feature: str) -> tuple[int, int]:
    for known in node.supported_features:
        if known.name == feature:
            return known.min_supported_version, known.max_supported_version
    return _UNKNOWN


# --- eligible leader replicas ------------------------------------------------------------------------


def _one_min_isr(image: MetadataImage, config: ControllerConfig) -> list[BatchItem]:
    """The records that make ``min.insync.replicas`` the same to every controller before ELR is on: set for the cluster,
    and for no single broker (KIP-966).
    """
    records = []
    if MIN_ISR_CONFIG not in image.configs.of(BROKER_RESOURCE, ""):
        value = config.static_configs.get(MIN_ISR_CONFIG, "1")
        records.append(ConfigRecord(BROKER_RESOURCE, "", MIN_ISR_CONFIG, value))
    resources = [ConfigResource(*key) for key in image.configs.resources]
    names = [one.name for one in resources if one.is_one_broker and MIN_ISR_CONFIG in image.configs.of(*one)]
    names.sort(key=lambda name: (as_whole(name) or 0, name))
    records += (ConfigRecord(BROKER_RESOURCE, name, MIN_ISR_CONFIG, None) for name in names)
    return [VersionedRecord(record, 0) for record in records]
