"""The active controller frozen for two session timeouts and thawed: no healthy broker is fenced by anybody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.records.records import BrokerRegistrationChangeRecord
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, controller_directory, make_fresh
from quorate.scripts.cluster.ports import free_ports
from tests.waiting import eventually

SESSION_S = 3.0
READY_S = 60.0
FENCES = 1


def fencings(directory: Path, end_offset: int) -> Iterator[int]:
    """The brokers whose fencing stands in a controller's log, below an offset: at the end they all leave in order."""
    for file in find_files(directory):
        for batch in iter_batches(file):
            if not batch.header.is_control and batch.header.end_offset <= end_offset:
                records = (r.record for r in iter_records(batch.data))
                yield from (
                    r.broker_id for r in records if isinstance(r, BrokerRegistrationChangeRecord) and r.fenced == FENCES
                )


@pytest.mark.parametrize("controllers", [1, 3])
async def test_active_controller_frozen_and_thawed_no_healthy_broker_is_fenced(
    tmp_path: Path, controllers: int
) -> None:
    brokers = 2
    plan = make_fresh(tmp_path, Ports.of(free_ports(2 * controllers + brokers)), controllers, brokers)
    # All three are a third of their defaults, so that what happens within a session stays what it is.
    options = LocalOptions(
        {"BROKERS__SESSION_TIMEOUT_MS": str(int(SESSION_S * 1000))},
        {"LIFECYCLE__HEARTBEAT_INTERVAL_MS": "667", "LIFECYCLE__REQUEST_TIMEOUT_MS": "1667"},
    )
    cluster = LocalCluster(tmp_path, plan, options)
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        active = (await cluster.wait_for_brokers(READY_S)).quorum.active_id
        assert active is not None
        cluster.controllers[active].pause()
        thawed_at = time.monotonic() + 2 * SESSION_S

        async def is_time_over() -> bool:
            return time.monotonic() >= thawed_at

        await eventually(is_time_over, "the controller was frozen for long enough", 3 * SESSION_S)
        cluster.controllers[active].resume()
        # Longer than a session: a fencing that the stall led to has been written by then.
        ends_at = time.monotonic() + 1.5 * SESSION_S

        async def is_settled() -> bool:
            return time.monotonic() >= ends_at

        await eventually(is_settled, "another session has gone by", 3 * SESSION_S)
        await cluster.wait_for_controllers(READY_S)
        end_offset = (await cluster.wait_for_brokers(READY_S)).quorum.high_watermark
    finally:
        await cluster.stop()
    for planned in plan.controllers:
        assert list(fencings(controller_directory(tmp_path, planned), end_offset)) == []
