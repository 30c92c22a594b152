"""A local cluster's processes: started in order, watched, stopped in order. For `up`, the tour, benchmarks, tests."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.controller.api.tls_files import TlsPaths
from quorate.controller.identity.uids import principal_of
from quorate.metadata_log.local_sockets import path_problem
from quorate.scripts.certificates.local_files import ADMIN_PRINCIPAL, SECRET_NAME, admin_tls, node_paths
from quorate.scripts.cluster.making import controller_directory, logs_directory
from quorate.scripts.cluster.members import Members, socket_path
from quorate.scripts.cluster.plan import ClusterPlan, PlannedBrokers, PlannedController
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.cluster.process import ManagedProcess, ProcessFailed
from quorate.scripts.cluster.settings_text import ControllerSettingsText, VoterSettings, tls_group, toml_text
from quorate.scripts.cluster.watched import WatchedCluster

#: A broker whose partitions nobody takes over leaves by itself after 30 s (``lifecycle.shutdown_timeout_ms``).
_BROKER_STOP_S: Final = 35.0
_CONTROLLER_STOP_S: Final = 15.0
#: Where nobody can take anything over: time for a broker to hear that it is to leave, before it is told to go.
_NO_MAJORITY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Settings on top of those that follow from the plan, as environment variables without their prefix."""

    controller: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)
    #: What runs a controller, to which ``--config FILE`` is added; a function of its id.
    controller_program: Callable[[int], tuple[str, ...]] = lambda node: ("-m", "quorate.scripts.cli", "controller")
    #: Settings of controllers about who may do what, as TOML, in place of those that follow from the plan; None: these,
    #: and brokers know who asks them by ACLs, too.
    access: Mapping[str, str] | None = None


#: Brokers know who asks them, as controllers do, by the same administrator.
_BROKER_ACCESS: Final = {
    "ACCESS__AUTHORIZER": "acl",
    "ACCESS__SUPER_USERS": json.dumps([ADMIN_PRINCIPAL]),
    "ACCESS__PROXIES": json.dumps([ADMIN_PRINCIPAL]),
}


class LocalCluster(WatchedCluster):
    """The processes of one plan in one directory."""

    def __init__(
        self,
        directory: Path,
        plan: ClusterPlan,
        options: LocalOptions | None = None,
        tell_lost: Callable[[str], None] | None = None,
        *,
        restarts: bool = False,
        shared_secret: bytes | None = None,
    ) -> None:
        """With ``tell_lost`` the cluster goes on without processes that end by themselves, and tells of each.

        That is as long as a majority of the controllers is left, or somebody starts them again (``restarts``); else
        their end is a failure of the whole. ``shared_secret``: with which its controllers are asked, or a token.
        """
        super().__init__(plan.members, shared_secret, tls=admin_tls(directory) if plan.is_secured else None)
        self.is_import = plan.is_import
        self._tell_lost = tell_lost
        self.restarts = restarts
        #: Processes that ended by themselves, and were told of.
        self._lost: set[ManagedProcess] = set()
        self.directory = directory
        self.plan = plan
        self.options = options or LocalOptions()
        self.controllers = {c.id: self._controller_process(c) for c in plan.controllers}
        #: By the first id that the process plays.
        self.brokers = {b.ids[0]: self.broker_process(b) for b in plan.brokers}

    @property
    def processes(self) -> Iterator[ManagedProcess]:
        """All of them, controllers first."""
        yield from self.controllers.values()
        yield from self.brokers.values()

    async def start(self) -> None:
        """Start what does not run."""
        self._lost.clear()
        for process in self.processes:
            await process.start()

    def kill(self) -> None:
        """All at once, for who cannot wait for ``stop``."""
        for process in self.processes:
            process.kill()

    async def stop(self) -> None:
        """Brokers first, which leave in order if there is a majority to tell; then the controllers."""
        await self.client.close()
        for process in self.processes:
            process.resume()
        running = sum(process.is_running for process in self.controllers.values())
        patience_s = None if running > len(self.controllers) // 2 else _NO_MAJORITY_S
        await asyncio.gather(*(process.stop(_BROKER_STOP_S, patience_s) for process in self.brokers.values()))
        await asyncio.gather(*(process.stop(_CONTROLLER_STOP_S) for process in self.controllers.values()))

    def check(self) -> None:
        """Raise ``ProcessFailed`` if a process has ended that should run, and was not told of."""
        for process in self.processes:
            if process not in self._lost:
                process.check()

    @property
    def awaited(self) -> Members:
        lost = {process.name for process in self._lost}
        controllers = {node: one for node, one in self.members.controllers.items() if one.name not in lost}
        brokers = {node: one for node, one in self.members.brokers.items() if one.name not in lost}
        return Members(self.members.cluster_id, controllers, brokers)

    def require_there(self) -> None:
        """Tell of processes that ended by themselves.

        Who was ended by order may be started by another one, so its end alone is no reason to give up.

        Raises:
            ProcessFailed: no majority of the controllers is left.
        """
        if self._tell_lost is None:
            return
        self._lost = {process for process in self._lost if not process.is_running}
        for process in self.processes:
            if process.has_failed and process not in self._lost:
                self._lost.add(process)
                self._tell_lost(process.obituary())
        of = len(self.controllers)
        if len(self.awaited.controllers) <= of // 2 and not self.restarts:
            logs = logs_directory(self.directory)
            left = sum(process.is_running for process in self.controllers.values())
            raise ProcessFailed(f"{left} of {of} controllers are left, which is no majority; logs in {logs}")

    # --- processes -----------------------------------------------------------------------------------

    def _log_path(self, name: str) -> Path:
        return logs_directory(self.directory) / f"{name}.log"

    def _controller_process(self, controller: PlannedController) -> ManagedProcess:
        settings = self.directory / f"controller-{controller.id}.toml"
        settings.write_text(self._controller_settings(controller), encoding="utf-8")
        name = f"controller-{controller.id}"
        arguments = (*self.options.controller_program(controller.id), "--config", str(settings))
        extra = {f"QUORATE_CONTROLLER_{key}": value for key, value in self.options.controller.items()}
        return ManagedProcess(name, arguments, self._log_path(name), extra)

    def _controller_settings(self, controller: PlannedController) -> str:
        groups = {"quorum": {"kraft_version": str(self.plan.kraft_version)}}
        if self.plan.is_import:
            groups["brokers"] = {"sessions_begin_with_heartbeat": "true"}
        path = socket_path(self.directory.resolve(), controller.id)
        # A cluster that lies too deep for a socket does without.
        if path_problem(path) is None:
            groups["http"] = {"unix_socket": toml_text(path)}
        if self.options.access is not None:
            groups["access"] = dict(self.options.access)
        return str(controller_settings(self.directory, self.plan, controller, groups))

    def broker_process(self, brokers: PlannedBrokers) -> ManagedProcess:
        """A process that plays brokers on this cluster; not one of its own unless the plan has it."""
        name = f"broker-{brokers.ids[0]}"
        arguments = ["-m", "quorate.scripts.cli", "broker", "--ids", ",".join(map(str, brokers.ids))]
        arguments += ["--controllers", ",".join(self.plan.controller_urls)]
        last_run = (self.directory / f"{name}.json").resolve()
        settings = {"HTTP__PORT": str(brokers.http_port), "LAST_RUN_FILE": str(last_run)}
        if brokers.is_twin:
            settings["IS_IMPORTED"] = "true"
        elif brokers.racks:
            settings["RACKS"] = ",".join(rack or "" for rack in brokers.racks)
        if self.plan.is_secured:
            settings |= _broker_tls(node_paths(self.directory, name))
            if self.options.access is None:
                settings |= _BROKER_ACCESS
        twins = [one for one in self.plan.brokers if one.is_twin]
        if twins:
            # Their registrations say where they were: who is to follow them, or be followed, must be told.
            settings["PEERS"] = ",".join(f"{id_}@{LOOPBACK}:{one.http_port}" for one in twins for id_ in one.ids)
        extra = {f"QUORATE_BROKER_{key}": value for key, value in {**settings, **self.options.broker}.items()}
        return ManagedProcess(name, arguments, self._log_path(name), extra)


def controller_settings(
    directory: Path,
    plan: ClusterPlan,
    controller: PlannedController,
    groups: Mapping[str, Mapping[str, str]] | None = None,
) -> ControllerSettingsText:
    """The settings of a controller of a plan.

    Args:
        groups: of its settings, besides those that follow from the plan.
    """
    own = controller_directory(directory, controller)
    said = {name: dict(values) for name, values in (groups or {}).items()}
    secret_file = None
    if plan.is_secured:
        secret_file = (directory / SECRET_NAME).resolve()
        said |= tls_group(node_paths(directory, f"controller-{controller.id}"))
        # Its administrator, and who runs it by a socket, may ask in anybody's name: so ACLs are tried.
        admin, runs_it = toml_text(ADMIN_PRINCIPAL), toml_text(principal_of(os.geteuid()))
        proxies = f"[{admin}, {runs_it}]"
        said.setdefault("access", {"authorizer": toml_text("acl"), "super_users": f"[{admin}]", "proxies": proxies})
    return ControllerSettingsText(controller.id, plan.cluster_id, own, voter_settings(plan), secret_file, said)


def _broker_tls(paths: TlsPaths) -> dict[str, str]:
    """Nobody is let in without a certificate."""
    return {
        "TLS__CERT_FILE": str(paths.cert_file),
        "TLS__KEY_FILE": str(paths.key_file),
        "TLS__CA_FILES": ",".join(map(str, paths.ca_files)),
        "TLS__CLIENT_AUTH": "required",
    }


def voter_settings(plan: ClusterPlan) -> tuple[VoterSettings, ...]:
    """The controllers of a plan as settings name them."""
    return tuple(
        VoterSettings(one.id, f"{LOOPBACK}:{one.quorum_port}", f"{LOOPBACK}:{one.http_port}", one.directory_id)
        for one in plan.controllers
    )
