"""AllocateProducerIds: blocks follow each other, and none is given twice or to a stranger."""

from __future__ import annotations

import pytest

from quorate.controller.brokers.producer_ids import BLOCK_SIZE, decide_allocate_producer_ids
from quorate.controller.protocol import AllocateProducerIdsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import ProducerIdsRecord
from tests.unit.controller.small_cluster import SmallCluster

LAST_FIRST = 2**63 - 1 - BLOCK_SIZE


def allocate(cluster: SmallCluster, broker: int, epoch: int | None = None) -> tuple[int, ProducerIdsRecord]:
    """The first id of the block, and the one record that was written."""
    request = AllocateProducerIdsRequest(
        broker_id=broker, broker_epoch=cluster.epoch(broker) if epoch is None else epoch
    )
    decision = decide_allocate_producer_ids(cluster.image, request)
    assert decision.reply.producer_id_len == BLOCK_SIZE
    (record,) = cluster.commit(decision)
    assert isinstance(record, ProducerIdsRecord)
    return decision.reply.producer_id_start, record


def test_first_block_begins_at_0_and_the_next_where_it_ends() -> None:
    cluster = SmallCluster(2)
    assert cluster.image.producer_ids.next_producer_id is None

    assert allocate(cluster, 0) == (0, ProducerIdsRecord(0, cluster.epoch(0), BLOCK_SIZE))
    assert allocate(cluster, 1) == (BLOCK_SIZE, ProducerIdsRecord(1, cluster.epoch(1), 2 * BLOCK_SIZE))
    assert cluster.image.producer_ids.next_producer_id == 2 * BLOCK_SIZE


def test_block_of_an_imported_log_begins_where_that_log_says() -> None:
    cluster = SmallCluster(1)
    cluster.write(ProducerIdsRecord(-1, -1, 4_321))

    assert allocate(cluster, 0)[0] == 4_321


@pytest.mark.parametrize(("broker", "off_by"), [(7, 0), (0, 1), (0, -1)])
def test_unknown_broker_or_other_epoch_is_refused(broker: int, off_by: int) -> None:
    cluster = SmallCluster(1)
    request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=cluster.epoch(broker) + off_by)

    with pytest.raises(ApiError) as refused:
        decide_allocate_producer_ids(cluster.image, request)

    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_last_block_is_given_and_then_no_more() -> None:
    """The first free id must itself be an int64: what would be left behind it is never given."""
    cluster = SmallCluster(1)
    cluster.write(ProducerIdsRecord(0, 0, LAST_FIRST))

    assert allocate(cluster, 0)[1].next_producer_id == 2**63 - 1
    with pytest.raises(ApiError, match="Exhausted all producerIds") as refused:
        allocate(cluster, 0)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
