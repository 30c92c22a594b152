"""Feature levels: who must support them, how they go up and down, what a lower one would lose."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.configs.features import decide_update_features, describe_features
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol.features import UpdateFeaturesRequest, UpdateFeaturesResponse
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    ControllerFeature,
    DelegationTokenRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    NoOpRecord,
    PartitionChangeRecord,
    Record,
    RegisterControllerRecord,
    VersionedRecord,
)
from quorate.snapshots.replay.replay import replay
from tests.default_parts import controller_config
from tests.unit.controller.small_cluster import CLUSTER_ID, SmallCluster, registration, uuid

BROKER = 4
MIN_ISR = "min.insync.replicas"
ELR = "eligible.leader.replicas.version"
MV = "metadata.version"
MUST_ASK = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)
GIVEN_UP = "Refusing to perform the requested downgrade because it might delete metadata information."


def update(
    cluster: SmallCluster, *updates: tuple[str, int, str], validate_only: bool = False
) -> tuple[UpdateFeaturesResponse, list[Record]]:
    request = UpdateFeaturesRequest.model_validate(
        {
            "feature_updates": [
                {"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level, kind in updates
            ],
            "validate_only": validate_only,
        }
    )
    decision = decide_update_features(cluster.image, cluster.config, request)
    return decision.reply, cluster.commit(decision)


def refusal(cluster: SmallCluster, *updates: tuple[str, int, str]) -> ApiError:
    before = cluster.image
    with pytest.raises(ApiError) as refused:
        update(cluster, *updates)
    assert cluster.image is before
    return refused.value


def test_levels_change_together_and_the_same_level_is_written_again() -> None:
    cluster = SmallCluster(0)
    _, records = update(cluster, ("transaction.version", 2, "UPGRADE"), (MV, 30, "UPGRADE"))
    assert records == [FeatureLevelRecord("transaction.version", 2), FeatureLevelRecord(MV, 30)]
    reply, records = update(cluster, ("transaction.version", 0, "SAFE_DOWNGRADE"), ("group.version", 0, "UPGRADE"))
    assert records == [FeatureLevelRecord("transaction.version", 0), FeatureLevelRecord("group.version", 0)]
    assert [(r.feature, r.level_before, r.level_after) for r in reply.results] == [
        ("transaction.version", 2, 0),
        ("group.version", 0, 0),
    ]
    assert dict(cluster.image.features.levels.items()) == {MV: 30}


def test_one_refused_level_refuses_all() -> None:
    cluster = SmallCluster(0)
    error = refusal(cluster, ("group.version", 1, "UPGRADE"), ("nope.version", 1, "UPGRADE"))
    assert error.message == (
        "Invalid update version 1 for feature nope.version. Local controller 3000 does not support this feature."
    )


@pytest.mark.parametrize(
    ("name", "level", "kind", "why"),
    [
        (ELR, 2, "UPGRADE", "Local controller 3000 only supports versions 0-1"),
        (ELR, -1, "UPGRADE", "A feature version cannot be less than 0."),
        (ELR, 1, "SAFE_DOWNGRADE", "Can't downgrade to a newer version."),
        ("group.version", 0, "UPGRADE", MUST_ASK),
        (MV, 31, "UPGRADE", "Local controller 3000 only supports versions 7-30"),
        (MV, 6, "UNSAFE_DOWNGRADE", "Local controller 3000 only supports versions 7-30"),
        ("nope.version", 0, "UPGRADE", "Feature nope.version not found."),
        ("transaction.version", 1, "UPGRADE", "Broker 1 does not support this feature."),
        ("share.version", 1, "UPGRADE", "Controller 3001 does not support this feature."),
        ("kraft.version", 1, "UPGRADE", "It is a setting of the controllers, quorum.kraft_version."),
        ("kraft.version", 2, "UPGRADE", "Local controller 3000 only supports versions 0-1"),
    ],
)  # fmt: skip
def test_level_that_cannot_be_is_refused_in_kafkas_words(name: str, level: int, kind: str, why: str) -> None:
    cluster = SmallCluster(0)
    cluster.write(FeatureLevelRecord("group.version", 1))
    known = ("group.version", "kraft.version", MV, ELR, "share.version")
    features = [{"name": n, "min_supported_version": 0, "max_supported_version": 40} for n in known]
    cluster.register(registration(1, features=features))
    supported = tuple(ControllerFeature(n, 0, 0 if n == "share.version" else 40) for n in known)
    cluster.write(RegisterControllerRecord(3001, uuid(1, 3001), False, (), supported))
    error = refusal(cluster, (name, level, kind))
    assert error.code is ErrorCode.INVALID_UPDATE_VERSION
    assert error.message == f"Invalid update version {level} for feature {name}. {why}"


def test_feature_named_twice_is_refused() -> None:
    error = refusal(SmallCluster(0), (ELR, 1, "UPGRADE"), (ELR, 0, "UPGRADE"))
    assert error.code is ErrorCode.INVALID_REQUEST


def test_elr_needs_its_metadata_version_which_may_come_with_it() -> None:
    cluster = SmallCluster(0)
    cluster.write(FeatureLevelRecord(MV, 22))
    error = refusal(cluster, (ELR, 1, "UPGRADE"))
    assert error.message.endswith(f"{ELR} could not be set to 1 because it depends on metadata.version level 23")
    _, records = update(cluster, (ELR, 1, "UPGRADE"), (MV, 23, "UPGRADE"))
    assert records == [
        ConfigRecord(BROKER, "", MIN_ISR, "1"),
        FeatureLevelRecord(ELR, 1),
        FeatureLevelRecord(MV, 23),
    ]


def test_elr_goes_on_with_one_min_isr_for_all_brokers() -> None:
    """Set for the cluster, from the static configuration if need be, and for no single broker: before the level."""
    config = controller_config(3000, CLUSTER_ID, static_configs={MIN_ISR: "2"})
    cluster = SmallCluster(0, config=config)
    for broker, name in (("10", MIN_ISR), ("9", MIN_ISR), ("8", "log.retention.ms")):
        cluster.write(ConfigRecord(BROKER, broker, name, "3"))
    _, records = update(cluster, (ELR, 1, "UPGRADE"), validate_only=True)
    assert records == []
    _, records = update(cluster, (ELR, 1, "UPGRADE"))
    assert records == [
        ConfigRecord(BROKER, "", MIN_ISR, "2"),
        ConfigRecord(BROKER, "9", MIN_ISR, None),
        ConfigRecord(BROKER, "10", MIN_ISR, None),
        FeatureLevelRecord(ELR, 1),
    ]
    _, records = update(cluster, (ELR, 1, "SAFE_DOWNGRADE"))
    assert records == [FeatureLevelRecord(ELR, 1)]


def test_elr_off_says_what_is_forgotten() -> None:
    cluster = SmallCluster(elr=True)
    cluster.create("t", [0, 1, 2], [0, 1, 2], [0, 1, 2])
    topic = cluster.topic_id("t")
    for change in (
        PartitionChangeRecord(0, topic, isr=(0,), eligible_leader_replicas=(1,)),
        PartitionChangeRecord(1, topic, isr=(), leader=-1, eligible_leader_replicas=(2,)),
    ):
        cluster.commit(Decision([VersionedRecord(change, 2)], None))
    reply, records = update(cluster, (ELR, 0, "UNSAFE_DOWNGRADE"), validate_only=True)
    assert records == []
    assert [(loss.count, loss.level) for loss in reply.results[0].losses] == [(2, 0), (1, 0)]
    reply, records = update(cluster, (ELR, 0, "UNSAFE_DOWNGRADE"))
    assert records == [FeatureLevelRecord(ELR, 0)]
    reply, _ = update(cluster, (ELR, 0, "UPGRADE"))
    assert reply.results[0].losses == []


@pytest.mark.parametrize(
    ("present", "level", "is_lossless"), [(29, 23, True), (29, 22, False), (30, 29, False), (12, 11, True)]
)
def test_metadata_version_goes_down_only_where_the_log_stays_what_it_is(
    present: int, level: int, is_lossless: bool
) -> None:
    cluster = SmallCluster(0)
    cluster.write(FeatureLevelRecord(MV, present))
    if is_lossless:
        _, records = update(cluster, (MV, level, "SAFE_DOWNGRADE"))
        assert records == [FeatureLevelRecord(MV, level)]
        return
    start = f"Unsupported metadata.version downgrade from {present} to {level}."
    assert refusal(cluster, (MV, level, "SAFE_DOWNGRADE")).message == f"{start} {GIVEN_UP}"
    error = refusal(cluster, (MV, level, "UNSAFE_DOWNGRADE"))
    assert error.message == f"{start} Unsafe metadata downgrade is not supported in this version."


def test_refused_downgrade_tells_what_would_be_lost() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    cluster.write(DelegationTokenRecord("User:o", "User:r", (), 1, 2, 3, "id"))
    cluster.write(RegisterControllerRecord(3000, uuid(1, 3000), False))
    change = BrokerRegistrationChangeRecord(1, cluster.epoch(1), cordoned_log_dirs=(uuid(2, 1),))
    cluster.commit(Decision([VersionedRecord(change, 3)], None))
    features = [{"name": MV, "min_supported_version": 7, "max_supported_version": 30}]
    for broker in range(3):
        cluster.register(registration(broker, features=features, cordoned_log_dirs=[uuid(2, broker)][: broker == 1]))
    losses: Any = refusal(cluster, (MV, 13, "SAFE_DOWNGRADE")).details["losses"]
    assert [(loss["level"], loss["count"]) for loss in losses] == [(29, 1), (16, 1), (14, 1), (13, 1)]
    assert losses[0] == {
        "feature": MV,
        "level": 29,
        "what": "brokers with cordoned log directories",
        "count": 1,
    }


def test_kraft_version_is_said_and_not_changed() -> None:
    cluster = SmallCluster(0)
    cluster.image = replay(cluster.image, [VersionedRecord(KRaftVersionRecord(1), 0)])
    _, records = update(cluster, ("kraft.version", 1, "UPGRADE"))
    assert records == [NoOpRecord()]
    assert update(cluster, ("kraft.version", 1, "SAFE_DOWNGRADE"))[1] == []
    assert refusal(cluster, ("kraft.version", 0, "SAFE_DOWNGRADE")).message.endswith(
        "Can't downgrade the version of this feature."
    )


def test_description_names_every_feature_known_or_set() -> None:
    cluster = SmallCluster(0, elr=True)
    cluster.write(FeatureLevelRecord("of.the.future", 3))
    cluster.image = replay(cluster.image, [VersionedRecord(KRaftVersionRecord(1), 0)])
    described = describe_features(cluster.image)
    assert described.finalized_features_epoch == cluster.image.provenance.last_contained_offset
    levels = {
        f.feature: (f.min_supported_version, f.max_supported_version, f.finalized_version_level)
        for f in described.features
    }
    assert levels == {
        ELR: (0, 1, 1),
        "group.version": (0, 1, 0),
        "kraft.version": (0, 1, 1),
        MV: (7, 30, 30),
        "of.the.future": (0, 0, 3),
        "share.version": (0, 1, 0),
        "streams.version": (0, 1, 0),
        "transaction.version": (0, 2, 0),
    }
