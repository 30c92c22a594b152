"""Registrations of controllers: who registers when, what is written, and what a missing one holds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.controller.brokers.controller_registration import decide_register_controller, is_wanting, own_registration
from quorate.controller.configs.features import SUPPORTED, decide_update_features
from quorate.controller.protocol.brokers import Listener
from quorate.controller.protocol.controllers import ControllerRegistrationRequest
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import (
    ControllerEndpoint,
    ControllerFeature,
    FeatureLevelRecord,
    RegisterControllerRecord,
)
from tests.unit.controller.small_cluster import CONFIG, SmallCluster, uuid

MV = "metadata.version"
LISTENER = {"name": "CONTROLLER", "host": "h", "port": 9093}
FEATURE = {"name": "f", "min_supported_version": 0, "max_supported_version": 1}
#: A quorum of three, of which this one is the active one.
VOTERS = replace(CONFIG, voter_ids=frozenset((3000, 3001, 3002)))


def own(node_id: int, incarnation: int = 0) -> ControllerRegistrationRequest:
    return own_registration(node_id, uuid(1, node_id, incarnation), [Listener.model_validate(LISTENER)])


def raise_share_version(cluster: SmallCluster) -> None:
    update = {"feature": "share.version", "max_version_level": 1, "upgrade_type": "UPGRADE"}
    request = UpdateFeaturesRequest.model_validate({"feature_updates": [update]})
    cluster.commit(decide_update_features(cluster.image, cluster.config, request))


def test_registration_is_one_record_with_all_levels_and_replaces_the_one_before() -> None:
    cluster = SmallCluster(0)

    (record,) = cluster.commit(decide_register_controller(cluster.image, own(3001)))

    features = tuple(ControllerFeature(name, *levels) for name, levels in sorted(SUPPORTED.items()))
    endpoints = (ControllerEndpoint("CONTROLLER", "h", 9093, 0),)
    assert record == RegisterControllerRecord(3001, uuid(1, 3001), False, endpoints, features)
    cluster.commit(decide_register_controller(cluster.image, own(3001, incarnation=1)))
    assert [c.incarnation_id for c in cluster.image.cluster.controllers.values()] == [uuid(1, 3001, 1)]


def test_controller_wants_to_register_until_the_log_has_its_incarnation() -> None:
    cluster = SmallCluster(0)
    assert is_wanting(cluster.image, own(3000))
    cluster.commit(decide_register_controller(cluster.image, own(3000)))
    assert not is_wanting(cluster.image, own(3000))
    assert is_wanting(cluster.image, own(3000, incarnation=1))
    assert is_wanting(cluster.image, own(3001))


@pytest.mark.parametrize("level", [7, 14])
def test_level_without_registrations_refuses_them_and_nobody_tries(level: int) -> None:
    cluster = SmallCluster(0)
    cluster.write(FeatureLevelRecord(MV, level))

    assert not is_wanting(cluster.image, own(3000))
    with pytest.raises(ApiError, match="too old to support controller registrations") as refused:
        decide_register_controller(cluster.image, own(3000))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"listeners": [LISTENER, LISTENER]}, "Two listeners"),
        ({"listeners": [LISTENER | {"security_protocol": 4}]}, "Unknown security protocol 4"),
        ({"listeners": [LISTENER | {"security_protocol": -1}]}, "Unknown security protocol -1"),
        ({"features": [FEATURE, FEATURE]}, "listed twice"),
    ],
)
def test_registration_that_nobody_could_use_is_refused(changes: dict[str, Any], says: str) -> None:
    request = ControllerRegistrationRequest.model_validate(own(3000).model_dump() | changes)
    with pytest.raises(ApiError, match=says) as refused:
        decide_register_controller(SmallCluster(0).image, request)
    assert refused.value.code is ErrorCode.INVALID_REGISTRATION


def test_level_is_raised_once_every_other_controller_of_the_quorum_has_registered() -> None:
    """This one knows itself; of the others it knows only what they have registered."""
    cluster = SmallCluster(0, config=VOTERS)
    for missing in (3001, 3002):
        with pytest.raises(ApiError) as refused:
            raise_share_version(cluster)
        assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
        assert refused.value.message == (
            "Invalid update version 1 for feature share.version. "
            f"controller {missing} has not registered, and may not support this feature"
        )
        cluster.commit(decide_register_controller(cluster.image, own(missing)))
    raise_share_version(cluster)
    assert cluster.image.features.levels["share.version"] == 1


def test_level_below_registrations_is_raised_without_them() -> None:
    cluster = SmallCluster(0, config=VOTERS)
    cluster.write(FeatureLevelRecord(MV, 14))
    assert "share.version" not in cluster.image.features.levels
    raise_share_version(cluster)
    assert cluster.image.features.levels["share.version"] == 1
