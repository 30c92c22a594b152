"""Feature levels: raising, lowering and describing them (Kafka's API 57, and what ApiVersions says of features)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quorate.controller.protocol.types import Int16, Int64, Message, Text

_UPDATES_MAX = 100


class FeatureUpdate(Message):
    """The level that one feature is to have; 0 = none."""

    feature: Text
    max_version_level: Int16
    #: Lowering must be asked for. SAFE_DOWNGRADE is refused where metadata might be lost.
    upgrade_type: Literal["UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"] = "UPGRADE"


class UpdateFeaturesRequest(Message):
    """Levels to change, all of them or none."""

    feature_updates: Annotated[list[FeatureUpdate], Field(max_length=_UPDATES_MAX)]
    #: Answer as if, and write nothing.
    validate_only: bool = False


class FeatureLoss(Message):
    """Metadata that a lower level cannot hold, or will not use."""

    feature: str
    #: The highest level without it.
    level: Int16
    what: str
    count: Int64


class UpdatedFeature(Message):
    """The outcome for one feature."""

    feature: str
    level_before: Int16
    level_after: Int16
    #: What goes, or would go, with a lower level.
    losses: list[FeatureLoss]


class UpdateFeaturesResponse(Message):
    """In the order of the request."""

    results: list[UpdatedFeature]


class DescribedFeature(Message):
    """One feature."""

    feature: str
    #: Levels that the answering controller's software can lead at.
    min_supported_version: Int16
    max_supported_version: Int16
    #: The level that holds in the cluster; 0 = the feature is off.
    finalized_version_level: Int16


class DescribeFeaturesResponse(Message):
    """All features, by name."""

    #: Offset of the last record that the levels were read from (Kafka's finalized features epoch).
    finalized_features_epoch: Int64
    features: list[DescribedFeature]
