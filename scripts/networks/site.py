"""A cluster on machines: controllers and brokers as real processes, each in a namespace with an address of its own."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.bootstrap import bootstrap_checkpoint
from metadata_log.directory import FormatPlan, format_directory, voters_checkpoint
from metadata_log.disk import RealDisk
from metadata_log.errors import QuorateError
from metadata_log.ids import uuid_from_text
from metadata_log.meta_properties import MetaProperties
from metadata_log.quorum_state import QuorumState
from metadata_log.records import KRaftVersionFeature, VoterEndpoint, VotersRecord, VotersVoter
from scripts.cluster.making import LISTENER_NAME, new_id
from scripts.cluster.members import Members, Node
from scripts.cluster.process import ManagedProcess
from scripts.cluster.watched import WatchedCluster
from scripts.networks.network import Network

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
    """The cluster of one run, in one directory."""

    def __init__(self, network: Network, directory: Path) -> None:
        self.network = network
        self.directory = directory
        secret = secrets.token_hex(32)
        super().__init__(_members(network), secret.encode())
        self.secret = secret.encode()
        self._secret_file = directory / "secret"
        self._secret_file.write_text(secret, encoding="ascii")
        self._secret_file.chmod(0o600)
        self._directory_ids = {controller: new_id() for controller in self.members.controllers}
        self.processes = {node.name: self._process(node) for node in self.members.nodes}

    def metadata_directory(self, controller: int) -> Path:
        """Where a controller's log is."""
        return self.directory / f"controller-{controller}"

    async def start(self) -> None:
        """Make the controllers' directories and start everything."""
        now_ms = time.time_ns() // 1_000_000
        for controller in self.members.controllers:
            self._format(controller, now_ms)
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

    # --- what they are told --------------------------------------------------------------------------

    def _format(self, controller: int, now_ms: int) -> None:
        directory_id = uuid_from_text(self._directory_ids[controller])
        plan = FormatPlan(
            meta=MetaProperties(self.members.cluster_id, controller, directory_id, None, 0),
            bootstrap=bootstrap_checkpoint(now_ms),
            voters=voters_checkpoint(VotersRecord(tuple(self._voters())), now_ms),
            quorum_state=QuorumState(leader_epoch=0, data_version=1, current_voters=()),
            imported=(),
        )
        format_directory(RealDisk(), str(self.metadata_directory(controller)), plan)

    def _voters(self) -> Iterator[VotersVoter]:
        for controller, node in self.members.controllers.items():
            endpoint = VoterEndpoint(LISTENER_NAME, node.host, _QUORUM_PORT)
            directory_id = uuid_from_text(self._directory_ids[controller])
            yield VotersVoter(controller, directory_id, (endpoint,), KRaftVersionFeature(0, 1))

    def _process(self, node: Node) -> ManagedProcess:
        settings = self.directory / f"{node.name}.toml"
        lines = self._controller_settings(node) if node.kind == "controller" else self._broker_settings(node)
        settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        arguments = ("-m", "scripts.cli", node.kind, "--config", str(settings))
        log = self.directory / "logs" / f"{node.name}.log"
        return ManagedProcess(node.name, arguments, log, enter=self.network.places[node.name].enter)

    def _controller_settings(self, node: Node) -> Iterator[str]:
        yield f"node_id = {node.id}"
        yield f'directory = "{self.metadata_directory(node.id)}"'
        yield f'shared_secret_file = "{self._secret_file}"'
        for controller, voter in self.members.controllers.items():
            yield "[[voters]]"
            yield f"id = {controller}"
            yield f'quorum = "{voter.host}:{_QUORUM_PORT}"'
            yield f'http = "{voter.host}:{_HTTP_PORT}"'
            yield f'directory_id = "{self._directory_ids[controller]}"'

    def _broker_settings(self, node: Node) -> Iterator[str]:
        yield f"ids = [{node.id}]"
        urls = ", ".join(f'"{url}"' for url in self.members.controller_urls)
        yield f"controllers = [{urls}]"
        yield f'shared_secret_file = "{self._secret_file}"'


def _members(network: Network) -> Members:
    controllers, brokers = {}, {}
    for name, place in network.places.items():
        kind, _, number = name.partition("-")
        if kind == "controller":
            url = f"http://{place.address}:{_HTTP_PORT}"
            controllers[int(number)] = Node("controller", int(number), place.address, url, (int(number),))
        elif kind == "broker":
            # Its HTTP API is on its machine's loopback: nobody else reaches it.
            brokers[int(number)] = Node("broker", int(number), place.address, None, (int(number),))
    return Members(new_id(), controllers, brokers)
