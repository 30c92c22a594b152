"""What became of a request is known from its answer alone."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.own_tasks import OwnTasks
from quorate.broker.replicas.claims import Claims, PartitionKey
from quorate.broker.replicas.isr_book import IsrBook
from quorate.broker.replicas.isr_requests import IsrRequests
from quorate.broker.replicas.led_rows import ALWAYS
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown, QuorateError
from tests.unit.controller.small_cluster import SmallCluster


class Failing:
    """A controller that fails every request as a whole."""

    def __init__(self, error: QuorateError) -> None:
        self._error = error

    async def alter_partition(self, _broker_epoch: int, _proposals: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "is_settled"),
    [
        (ApiError(ErrorCode.STALE_BROKER_EPOCH, "another epoch"), True),
        (NotController(None), True),
        (OutcomeUnknown("no answer"), False),
        (QuorateError("no answer that makes sense"), False),
    ],
)
async def test_request_that_failed_as_a_whole_is_settled_only_where_a_controller_refused_it(
    error: QuorateError, is_settled: bool
) -> None:
    cluster = SmallCluster()
    cluster.create("t", [1, 2])
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(2)
    key, leader_epoch = PartitionKey(cluster.topic_id("t"), 0), cluster.partition("t").leader_epoch
    book, claims = IsrBook(0.0, trusts_isr=True), Claims()
    book.update(cluster.image, {1}, 0.0)
    ids = np.frombuffer(key.topic_id, np.uint8).reshape(1, 16)
    partition, epoch, replica = (np.array([number], np.int32) for number in (0, leader_epoch, 2))
    assert book.note(ids, partition, epoch, replica, np.array([ALWAYS]), np.zeros(1, np.bool_)) == [0]
    rpc = cast("ControllerRpc", Failing(error))
    requests = IsrRequests(rpc, book, lambda: {1: cluster.epoch(1)}, lambda: 0.0, lambda: None, claims)
    async with OwnTasks() as tasks:
        requests.send_due(tasks, frozenset({1}))
        assert claims.members(key) == {2}
        assert not claims.taken_back(key, 2), "it is under way"

    assert requests.counters.failed_requests == 1
    assert claims.taken_back(key, 2) == is_settled
