"""AssignReplicasToDirs: what a broker may say of its directories, and what follows."""

from __future__ import annotations

import pytest

from quorate.controller.partitions.directory_assignments import decide_assign_replicas_to_dirs
from quorate.controller.protocol import AssignReplicasToDirsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import DIRECTORY_LOST, Uuid
from quorate.metadata_log.records.records import FeatureLevelRecord, PartitionChangeRecord, Record
from tests.unit.controller.small_cluster import SmallCluster, registration, uuid

ONLINE, OTHER, GONE = uuid(2, 0), uuid(2, 0, 1), uuid(2, 0, 9)


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(brokers=4)
    cluster.register(registration(0, log_dirs=[ONLINE, OTHER]))
    cluster.heartbeat(0)
    cluster.create("t", [0, 1, 2], [1, 0, 2], [1, 2, 3])
    return cluster


def assign(
    cluster: SmallCluster, *named: tuple[Uuid, Uuid, list[int]], epoch: int | None = None
) -> tuple[list[list[ErrorCode]], list[Record]]:
    """What broker 0 is answered, directory by directory, and what was written."""
    request = AssignReplicasToDirsRequest.model_validate(
        {
            "broker_id": 0,
            "broker_epoch": cluster.epoch(0) if epoch is None else epoch,
            "directories": [
                {
                    "id": directory,
                    "topics": [{"topic_id": topic_id, "partitions": [{"partition_index": n} for n in numbers]}],
                }
                for directory, topic_id, numbers in named
            ],
        }
    )
    decision = decide_assign_replicas_to_dirs(cluster.image, cluster.config, request)
    codes = [[p.error_code for p in directory.topics[0].partitions] for directory in decision.reply.directories]
    return codes, cluster.commit(decision)


def test_assign_online_directory_is_noted_and_nothing_else(cluster: SmallCluster) -> None:
    topic = cluster.topic_id("t")
    before = cluster.partition("t", 1)

    codes, records = assign(cluster, (OTHER, topic, [0, 1]))

    assert codes == [[ErrorCode.NONE, ErrorCode.NONE]]
    assert len(records) == 2
    after = cluster.partition("t", 1)
    assert after.directories == (before.directories[0], OTHER, before.directories[2])
    assert (after.isr, after.leader, after.leader_epoch) == (before.isr, before.leader, before.leader_epoch)


def test_assign_same_directory_again_writes_nothing(cluster: SmallCluster) -> None:
    topic = cluster.topic_id("t")
    assign(cluster, (OTHER, topic, [0]))

    assert assign(cluster, (OTHER, topic, [0])) == ([[ErrorCode.NONE]], [])


@pytest.mark.parametrize("directory", [GONE, DIRECTORY_LOST])
def test_assign_directory_that_is_not_online_takes_the_broker_out_of_the_isr(
    cluster: SmallCluster, directory: Uuid
) -> None:
    codes, records = assign(cluster, (directory, cluster.topic_id("t"), [0]))

    assert codes == [[ErrorCode.NONE]]
    assert [(r.directories is not None, r.isr) for r in records if isinstance(r, PartitionChangeRecord)] == [
        (True, None),
        (False, (1, 2)),
    ]
    after = cluster.partition("t", 0)
    assert (after.directories[0], after.isr, after.leader) == (directory, (1, 2), 1)


def test_assign_what_is_not_there_fails_one_by_one(cluster: SmallCluster) -> None:
    topic = cluster.topic_id("t")

    codes, records = assign(cluster, (OTHER, topic, [2, 7, 1]), (OTHER, uuid(9, 9), [0]))

    assert codes == [
        [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE],
        [ErrorCode.UNKNOWN_TOPIC_ID],
    ]
    assert len(records) == 1


def test_assign_nothing_is_answered_with_nothing(cluster: SmallCluster) -> None:
    request = AssignReplicasToDirsRequest(broker_id=0, broker_epoch=cluster.epoch(0), directories=[])

    decision = decide_assign_replicas_to_dirs(cluster.image, cluster.config, request)

    assert (decision.reply.directories, list(decision.records)) == ([], [])


def test_assign_wrong_epoch_or_old_cluster_is_refused(cluster: SmallCluster) -> None:
    named = (OTHER, cluster.topic_id("t"), [0])
    with pytest.raises(ApiError) as refused:
        assign(cluster, named, epoch=cluster.epoch(0) + 1)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    cluster.write(FeatureLevelRecord("metadata.version", 16))
    with pytest.raises(ApiError) as refused:
        assign(cluster, named)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
