"""A cluster as on machines of one's own: made by `quorate format`, each controller at a loopback address of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.cluster.process import ManagedProcess
from tests.integration.commands import Ended, alone
from tests.waiting import eventually

READY_S = 60.0


@dataclass
class OwnMachines:
    """Settings in a directory, and the processes that were started with them."""

    home: Path
    cluster_id: str
    controllers: dict[int, str]
    client: ControllerClient
    processes: dict[str, ManagedProcess] = field(default_factory=dict)

    def settings(self, node: int) -> Path:
        return self.home / "etc" / f"controller-{node}.toml"

    def directory(self, node: int) -> Path:
        return self.home / "data" / f"controller-{node}"

    @property
    def secret_file(self) -> str:
        return str(self.home / "etc" / "secret")

    async def format(self, node: int, *options: str) -> Ended:
        return await alone("format", "directory", "--config", str(self.settings(node)), *options)

    async def start(self, node: int) -> ManagedProcess:
        """A controller, by the command that an operator gives."""
        return await self._start(f"controller-{node}", "controller", "--config", str(self.settings(node)))

    async def start_broker(self, node: int) -> ManagedProcess:
        """A broker, likewise."""
        settings = str(self.home / "etc" / "broker.toml")
        return await self._start(f"broker-{node}", "broker", "--config", settings, "--ids", str(node))

    async def _start(self, name: str, *command: str) -> ManagedProcess:
        process = ManagedProcess(name, ("-m", "quorate.scripts.cli", *command), self.home / "logs" / f"{name}.log")
        self.processes[name] = process
        await process.start()
        return process

    async def kill(self, node: int) -> None:
        process = self.processes[f"controller-{node}"]
        process.kill()
        await process.wait(READY_S)

    async def status(self) -> StatusReply | None:
        """As the active controller sees it; None while there is none."""
        try:
            status = await self.client.status()
        except ApiError:
            return None
        return status if status.quorum.active_id is not None else None

    async def all_vote(self) -> StatusReply:
        """Until all controllers follow an active one, with a vote."""

        async def look() -> StatusReply | None:
            status = await self.status()
            roles = [voter.role for voter in status.quorum.voters] if status is not None else []
            return status if sorted(roles) == ["active", *["standby"] * (len(self.controllers) - 1)] else None

        status = await eventually(look, "all controllers vote", READY_S)
        assert status is not None
        return status

    async def create_topic(self, name: str) -> None:
        """A change that is acknowledged."""
        asked = ("--controllers", ",".join(self.controllers.values()), "--secret-file", self.secret_file)
        made = await alone("topics", "create", name, "--partitions", "1", "--replication-factor", "1", *asked)
        assert made.code == 0, made


@asynccontextmanager
async def own_machines(home: Path) -> AsyncIterator[OwnMachines]:
    """The settings of three controllers at 127.0.0.1 to .3; nothing is formatted. What was started is killed."""
    ports = free_ports(2)
    named = [f"{node}@127.0.0.{node}:{ports[0]}:{ports[1]}" for node in (1, 2, 3)]
    wanted = [word for one in named for word in ("--controller", one)]
    data = ("--to", str(home / "etc"), "--metadata", str(home / "data" / "controller-{id}"))
    made = await alone("format", "settings", *data, *wanted, "--json")
    assert made.code == 0, made
    urls = {node: f"127.0.0.{node}:{ports[1]}" for node in (1, 2, 3)}
    secret = (home / "etc" / "secret").read_bytes().strip()
    async with ControllerClient(list(urls.values()), shared_secret=secret) as client:
        cluster = OwnMachines(home, json.loads(made.out)["cluster_id"], urls, client)
        try:
            yield cluster
        finally:
            for process in cluster.processes.values():
                process.kill()
                await process.wait(READY_S)
            for path in sorted((home / "logs").glob("*.log")):
                print(f"== {path.name}\n{path.read_text()[-2000:]}")
