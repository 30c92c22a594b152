"""A plan of the capacity job, carried out by a running cluster: accepted, completed, then there is nothing to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.controller.planning.cluster import ReassignmentPlan
from quorate.pipeline.capacity.state import LAST, readings, state_tables
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.fold.reading import fold_task
from quorate.pipeline.fold.state import state_at
from quorate.pipeline.planning.files import write_plan
from quorate.pipeline.planning.summary import PlanSummary, planned
from quorate.pipeline.planning.tables import NamedCluster, named_cluster
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, controller_directory, make_twin
from quorate.scripts.cluster.plan import PlannedBrokers
from quorate.scripts.cluster.ports import free_ports
from tests.integration.commands import command
from tests.integration.running_cluster import PATIENT
from tests.waiting import eventually

NEW = 15
READY_S = 90
END_S = 30


@asynccontextmanager
async def twin_with_a_new_broker(directory: Path, source: Path) -> AsyncIterator[LocalCluster]:
    """The captured cluster, all its four brokers alive, and a fifth one in a rack of its own that holds nothing."""
    ports = Ports.of(free_ports(11))
    plan = make_twin(directory, source, ports, "all")
    newcomer = PlannedBrokers(ids=(NEW,), http_port=ports.take(), racks=("c",))
    plan = plan.model_copy(update={"brokers": (*plan.brokers, newcomer)})
    cluster = LocalCluster(directory, plan, LocalOptions(controller=PATIENT))
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        await cluster.wait_for_brokers(READY_S)
        yield cluster
    finally:
        for process in cluster.processes:
            process.kill()
            await process.wait(END_S)
        await cluster.client.close()


def plan_of_log(cluster: LocalCluster) -> tuple[NamedCluster, ReassignmentPlan, PlanSummary]:
    """What the job does, without Spark."""
    log = controller_directory(cluster.directory, cluster.plan.controllers[0])
    (found,) = find_inputs([str(log)])
    tasks = [fold_task(one.task, one.wanted, (LAST,))[0] for one in readings(found, None)]
    named = named_cluster(*state_tables(state_at(tasks, LAST)))
    return named, *planned(named)


@pytest.mark.timeout(400)
async def test_plan_for_a_new_broker_is_accepted_and_completes(tmp_path: Path, kafka_data: Path) -> None:
    """3,061 partitions of a captured cluster: the new broker gets its share, leaders are even, all of it done."""
    async with twin_with_a_new_broker(tmp_path / "twin", kafka_data / "static" / "m2" / "log") as cluster:
        url = ",".join(cluster.plan.controller_urls)

        async def is_healed() -> bool:
            # Two of the brokers were dead when it was captured.
            return (await cluster.client.status()).verdict == "healthy"

        await eventually(is_healed, "all partitions are led and in sync", READY_S)
        named, plan, summary = plan_of_log(cluster)
        assert summary.partitions == 3061
        assert {one.broker: one.role for one in summary.brokers} == dict.fromkeys((11, 12, 13, 14, NEW), "takes")
        assert summary.moves == summary.fewest_moves
        assert summary.verdict.replicas.is_even
        assert summary.verdict.leaders.is_even
        (file,) = write_plan(named, plan, tmp_path / "plan")

        applied = await command(url, "reassign", "apply", str(file), "--wait")
        assert applied.code == 0, applied
        verified = await command(url, "reassign", "verify", str(file))
        assert (verified.code, verified.out.count("is completed.")) == (0, summary.changed)

        async def is_elected() -> bool:
            # A preferred leader may be on its way back into an ISR that it fell out of.
            return (await command(url, "elect", "--type", "preferred", "--all")).code == 0

        await eventually(is_elected, "preferred leaders everywhere", READY_S)

        async def has_nothing_left() -> bool:
            _, _, again = plan_of_log(cluster)
            led = [one.leaders_now for one in again.brokers]
            return again.changed == 0 and max(led) - min(led) <= 1

        await eventually(has_nothing_left, "the log says that all is even")
