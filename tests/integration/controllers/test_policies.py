"""Policies in real controllers: the rules of docs/policies.md, and a controller that cannot load its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import Ended, command
from tests.policies_page import house_rules

READY_S, STOP_S = 60.0, 30.0
SETTINGS = {"POLICIES__CREATE_TOPIC": "house_rules:TopicRules", "POLICIES__ALTER_CONFIG": "house_rules:ConfigRules"}


@asynccontextmanager
async def ruled(directory: Path) -> AsyncIterator[LocalCluster]:
    """A controller with the rules of the page, and two brokers; made and not started."""
    made = LocalCluster(directory, make_fresh(directory, Ports.of(free_ports(4)), 1, 2), LocalOptions(SETTINGS))
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()
            await process.wait(STOP_S)
        await made.client.close()


async def test_controller_asks_the_rules_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "house_rules.py").write_text(house_rules(), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with ruled(tmp_path / "cluster") as cluster:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        await cluster.wait_for_brokers(READY_S)
        url = f"127.0.0.1:{cluster.plan.controllers[0].http_port}"

        async def quorate(*arguments: str) -> Ended:
            return await command(url, *arguments)

        refused = await quorate("topics", "create", "orders", "--replication-factor", "2")
        assert (refused.code, refused.out) == (exit_codes.REFUSED, "")
        assert refused.err == "quorate: orders: a topic is called team.purpose, not orders (POLICY_VIOLATION)\n"
        made = await quorate("topics", "create", "sales.orders", "--replication-factor", "2")
        assert made.code == exit_codes.DONE, made.err
        kept = await quorate("configs", "alter", "topic/sales.orders", "--set", "retention.ms=-1")
        assert kept.code == exit_codes.REFUSED
        assert "retention.ms of sales.orders: at most 2592000000, not -1" in kept.err
        listed = await quorate("topics", "list")
        assert listed.cells[1:] == [["sales.orders", "1", "2"]]


async def test_controller_without_its_rules_does_not_start(tmp_path: Path) -> None:
    async with ruled(tmp_path) as cluster:
        (controller,) = cluster.controllers.values()
        await controller.start()
        await controller.wait(STOP_S)
        (log,) = (tmp_path / "logs").glob("controller*.log")
        assert controller.exit_code == exit_codes.REFUSED, log.read_text(encoding="utf-8")
        last = log.read_text(encoding="utf-8").splitlines()[-1]
        assert last.startswith("quorate: policies.create_topic house_rules:TopicRules: there is no module house_rules")
