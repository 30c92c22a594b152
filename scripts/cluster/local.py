"""A local cluster's processes: started in order, watched, stopped in order. For `up`, the tour, benchmarks, tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from controller.client import ControllerClient
from controller.http.resources import StatusReply
from metadata_log.errors import ApiError
from scripts.cluster.making import controller_directory
from scripts.cluster.plan import ClusterError, ClusterPlan, PlannedBrokers, PlannedController
from scripts.cluster.ports import LOOPBACK, require_free
from scripts.cluster.process import ManagedProcess

T = TypeVar("T")

_STOP_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 0.02
_STATUS_TIMEOUT_MS: Final = 2_000.0


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Settings on top of those that follow from the plan, as environment variables without their prefix."""

    controller: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)
    #: What runs a controller, to which ``--config FILE`` is added; a function of its id.
    controller_program: Callable[[int], tuple[str, ...]] = lambda node: ("-m", "scripts.cli", "controller")


class LocalCluster:
    """The processes of one plan in one directory."""

    def __init__(self, directory: Path, plan: ClusterPlan, options: LocalOptions | None = None) -> None:
        self.directory = directory
        self.plan = plan
        self.options = options or LocalOptions()
        self.controllers = {c.id: self._controller_process(c) for c in plan.controllers}
        #: By the first id that the process plays.
        self.brokers = {b.ids[0]: self.broker_process(b) for b in plan.brokers}
        self.client = ControllerClient(plan.controller_urls)

    @property
    def processes(self) -> Iterator[ManagedProcess]:
        """All of them, controllers first."""
        yield from self.controllers.values()
        yield from self.brokers.values()

    def require_ports(self) -> None:
        """Raise ``PortTaken`` if something else listens where a process of this cluster should."""
        for controller in self.plan.controllers:
            require_free(controller.quorum_port, f"controller {controller.id}, quorum")
            require_free(controller.http_port, f"controller {controller.id}, HTTP")
        for brokers in self.plan.brokers:
            require_free(brokers.http_port, f"broker {brokers.ids[0]}, HTTP")

    async def start(self) -> None:
        """Start what does not run."""
        for process in self.processes:
            await process.start()

    async def stop(self) -> None:
        """Brokers first, which leave in order; then the controllers."""
        await self.client.close()
        await asyncio.gather(*(process.stop(_STOP_TIMEOUT_S) for process in self.brokers.values()))
        await asyncio.gather(*(process.stop(_STOP_TIMEOUT_S) for process in self.controllers.values()))

    def check(self) -> None:
        """Raise ``ProcessFailed`` if a process has ended that should run."""
        for process in self.processes:
            process.check()

    async def status(self) -> StatusReply:
        """The cluster as its active controller sees it."""
        return await self.client.status()

    async def wait_for_controllers(self, deadline_s: float) -> StatusReply:
        """Until there is an active controller and all voters follow it."""

        async def look() -> StatusReply | None:
            status = await self.status()
            followed = [v for v in status.quorum.voters if v.role in ("active", "standby")]
            is_complete = len(followed) == len(self.plan.controllers)
            return status if status.quorum.active_id is not None and is_complete else None

        return await self.until(look, "all controllers follow one active controller", deadline_s)

    async def wait_for_brokers(self, deadline_s: float) -> StatusReply:
        """Until every broker that is played is unfenced."""
        wanted = {broker for brokers in self.plan.brokers for broker in brokers.ids}

        async def look() -> StatusReply | None:
            status = await self.status()
            return status if wanted <= {b.id for b in status.brokers if b.state == "active"} else None

        return await self.until(look, f"brokers {sorted(wanted)} are active", deadline_s)

    async def until(self, look: Callable[[], Awaitable[T | None]], what: str, deadline_s: float) -> T:
        """Look until there is something to see. An unreachable controller is no failure: it may be on its way.

        Raises:
            ClusterError: not within the deadline. ProcessFailed: nor then, and a process ended by itself.
        """
        end = time.monotonic() + deadline_s
        last: object = None
        while time.monotonic() < end:
            try:
                seen = await look()
                if seen is not None:
                    return seen
            except ApiError as error:
                last = error
            await asyncio.sleep(_POLL_S)
        self.check()
        raise ClusterError(f"not within {deadline_s:.0f} s: {what}" + (f" ({last})" if last else ""))

    async def topic_names(self) -> set[str]:
        """All topics there are."""
        names: set[str] = set()
        after: str | None = ""
        while after is not None:
            page = await self.client.list_topics(after=after)
            names |= {topic.name for topic in page.topics}
            after = page.next_after
        return names

    # --- processes -----------------------------------------------------------------------------------

    def _log_path(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"

    def _controller_process(self, controller: PlannedController) -> ManagedProcess:
        settings = self.directory / f"controller-{controller.id}.toml"
        settings.write_text(self._controller_settings(controller), encoding="utf-8")
        name = f"controller-{controller.id}"
        arguments = (*self.options.controller_program(controller.id), "--config", str(settings))
        extra = {f"QUORATE_CONTROLLER_{key}": value for key, value in self.options.controller.items()}
        return ManagedProcess(name, arguments, self._log_path(name), extra)

    def _controller_settings(self, controller: PlannedController) -> str:
        lines = [f"node_id = {controller.id}", f'directory = "{controller_directory(self.directory, controller)}"']
        if self.plan.source_cluster_id is not None or self.plan.source is not None:
            lines += ["", "[brokers]", "sessions_begin_with_heartbeat = true"]
        lines += ["", "[quorum]", f"kraft_version = {self.plan.kraft_version}"]
        for voter in self.plan.controllers:
            lines += [
                "",
                "[[voters]]",
                f"id = {voter.id}",
                f'quorum = "{LOOPBACK}:{voter.quorum_port}"',
                f'http = "{LOOPBACK}:{voter.http_port}"',
                f'directory_id = "{voter.directory_id}"',
            ]
        return "\n".join(lines) + "\n"

    def broker_process(self, brokers: PlannedBrokers) -> ManagedProcess:
        """A process that plays brokers on this cluster; not one of its own unless the plan has it."""
        name = f"broker-{brokers.ids[0]}"
        arguments = ["-m", "scripts.cli", "broker", "--ids", ",".join(map(str, brokers.ids))]
        arguments += ["--controllers", ",".join(self.plan.controller_urls)]
        settings = {"HTTP__PORT": str(brokers.http_port), **self.options.broker}
        if brokers.is_twin:
            settings["IS_IMPORTED"] = "true"
        elif brokers.racks:
            settings["RACKS"] = ",".join(rack or "" for rack in brokers.racks)
        extra = {f"QUORATE_BROKER_{key}": value for key, value in settings.items()}
        return ManagedProcess(name, arguments, self._log_path(name), extra)
