"""A cluster on machines: controllers and brokers as real processes, each in a namespace with an address of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.certificates.local_files import SECRET_NAME
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.members import LocalNode, Members
from quorate.scripts.cluster.own_machines import (
    BROKER_SETTINGS_NAME,
    NewController,
    found_directory,
    write_settings,
)
from quorate.scripts.cluster.process import ManagedProcess
from quorate.scripts.cluster.watched import WatchedCluster
from quorate.scripts.networks.network import VirtualNetwork

#: The machine that the clients are on.
CLIENTS: Final = "clients"
_QUORUM_PORT: Final = 9093
_HTTP_PORT: Final = 8080
_FIRST_BROKER: Final = 11
_STOP_S: Final = 15.0


def machine_names(voters: int, brokers: int) -> list[str]:
    """The clients' machine, and one for each process."""
    controllers = [f"controller-{number}" for number in range(1, voters + 1)]
    return [CLIENTS, *controllers, *(f"broker-{_FIRST_BROKER + number}" for number in range(brokers))]


class Site(WatchedCluster):
    """The cluster of one run, in one directory: made as an operator makes one, by what ``quorate format`` does."""

    def __init__(self, network: VirtualNetwork, directory: Path) -> None:
        self.network = network
        self.directory = directory
        members = _members(network)
        controllers = [
            NewController(number, f"{node.host}:{_QUORUM_PORT}", f"{node.host}:{_HTTP_PORT}")
            for number, node in members.controllers.items()
        ]
        metadata = str(directory / "controller-{id}")
        # The namespaces are nobody else's, and what TLS would add to each figure is not what is measured.
        self._settings = write_settings(
            directory / "settings", members.cluster_id, controllers, metadata, insecure=True
        )
        self.secret = read_secret(self._settings[SECRET_NAME])
        super().__init__(members, self.secret, insecure=True)
        self.processes = {node.name: self._process(node) for node in self.members.nodes}

    def metadata_directory(self, controller: int) -> Path:
        """The directory of a controller's log."""
        return self.directory / f"controller-{controller}"

    async def start(self) -> None:
        """Make the controllers' directories and start everything."""
        for node in self.members.controllers.values():
            settings = load_settings(ControllerSettings, self._settings_of(node), ())
            await asyncio.to_thread(found_directory, settings, self.members.cluster_id, is_founding=True)
        for process in self.processes.values():
            await process.start()

    async def stop(self) -> None:
        """No process is left, whatever state it is in; brokers, which leave in order, end first."""
        await self.client.close()
        for kind in ("broker", "controller"):
            ending = (self.processes[node.name].stop(_STOP_S) for node in self.members.nodes if node.kind == kind)
            for ended in await asyncio.gather(*ending, return_exceptions=True):
                if isinstance(ended, BaseException) and not isinstance(ended, QuorateError):
                    raise ended

    def kill_all(self) -> None:
        """SIGKILL to all that run: what is left to do where nothing may be waited for."""
        for process in self.processes.values():
            process.kill()

    def check(self) -> None:
        """Raise ``ProcessFailed`` if a process has ended that should run."""
        for process in self.processes.values():
            process.check()

    # --- processes -----------------------------------------------------------------------------------

    def _settings_of(self, node: LocalNode) -> Path:
        return self._settings[f"{node.name}.toml" if node.kind == "controller" else BROKER_SETTINGS_NAME]

    def _process(self, node: LocalNode) -> ManagedProcess:
        arguments = ["-m", "quorate.scripts.cli", node.kind, "--config", str(self._settings_of(node))]
        if node.kind == "broker":
            arguments += ["--ids", str(node.id)]
        log = self.directory / "logs" / f"{node.name}.log"
        return ManagedProcess(node.name, arguments, log, enter=self.network.places[node.name].enter)


def _members(network: VirtualNetwork) -> Members:
    controllers, brokers = {}, {}
    for name, place in network.places.items():
        kind, _, number = name.partition("-")
        if kind == "controller":
            url = f"http://{place.address}:{_HTTP_PORT}"
            controllers[int(number)] = LocalNode("controller", int(number), place.address, url, (int(number),))
        elif kind == "broker":
            # Its HTTP API is on its machine's loopback: nobody else reaches it.
            brokers[int(number)] = LocalNode("broker", int(number), place.address, None, (int(number),))
    return Members(new_id(), controllers, brokers)
