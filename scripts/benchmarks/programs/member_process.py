"""The common part of all member processes: open the directory, run the quorum, answer commands until the input ends."""

from __future__ import annotations

import asyncio
import cProfile
import gc
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import uvloop

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.process.quorum_parts import default_quorum_config, quorum_tls
from quorate.controller.process.settings import LogSettings
from quorate.controller.process.settings_parts import log_config
from quorate.metadata_log.directory.directory import MetadataDirectory
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import uuid_from_text
from quorate.metadata_log.private_files import read_secrets
from quorate.quorum.config import QuorumConfig, VoterAddress
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.quorum.runtime import QuorumRuntime
from quorate.quorum.storage.storage import NodeStorage
from quorate.quorum.transport.handshake import Secrets, no_secret
from quorate.quorum.transport.tls import QuorumTls
from quorate.scripts.benchmarks.members import load_plan
from quorate.scripts.certificates.local_files import SECRET_NAME, node_paths
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import LOOPBACK

_FATAL: Final = 3

Command = Callable[..., Awaitable[dict[str, Any]]]


class MemberProcess(ABC):
    """One voter. Subclasses say what is on top of the quorum, and which commands there are."""

    def __init__(self, plan: ClusterPlan, node_id: int) -> None:
        self.plan = plan
        self.node_id = node_id
        self.runtime: QuorumRuntime

    def attach(self, runtime: QuorumRuntime) -> None:
        """The quorum of this voter, once, before it starts."""
        self.runtime = runtime

    @abstractmethod
    def commands(self) -> dict[str, Command]:
        """By name."""

    @abstractmethod
    def on_commit(self, batches: CommittedBatches) -> None:
        """See ``QuorumListener``."""

    @abstractmethod
    def on_snapshot(self, reader: SnapshotReader) -> None:
        """See ``QuorumListener``."""

    @abstractmethod
    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """See ``QuorumListener``."""


def quorum_config(plan: ClusterPlan, node_id: int) -> QuorumConfig:
    """The configuration of one voter of a plan."""
    voters = tuple(
        VoterAddress(voter.id, LOOPBACK, voter.quorum_port, uuid_from_text(voter.directory_id))
        for voter in plan.controllers
    )
    own = next(voter for voter in voters if voter.node_id == node_id)
    config = default_quorum_config(plan.cluster_id, node_id, own.directory_id, voters)
    return replace(config, kraft_version=plan.kraft_version)


def run_member(make: Callable[[ClusterPlan, int], MemberProcess]) -> None:
    """``main`` of a member: arguments are the cluster's directory, the node id, and where to write a profile."""
    directory, node_id = Path(sys.argv[1]), int(sys.argv[2])
    # Of processor time: other processes of the machine do not show in it.
    profile = cProfile.Profile(time.thread_time) if len(sys.argv) > 3 else None
    if profile is not None:
        profile.enable()
    uvloop.run(_run(make, directory, node_id))
    if profile is not None:
        profile.disable()
        profile.dump_stats(Path(sys.argv[3]) / f"member-{node_id}.prof")


async def _run(make: Callable[[ClusterPlan, int], MemberProcess], directory: Path, node_id: int) -> None:
    plan = load_plan(directory)
    own = next(controller for controller in plan.controllers if controller.id == node_id)
    disk = RealDisk()
    metadata = MetadataDirectory.open(disk, str(controller_directory(directory, own)), node_id, plan.cluster_id)
    config = quorum_config(plan, node_id)
    storage = NodeStorage.open(disk, metadata.log_path, config, log_config(LogSettings()))
    member = make(plan, node_id)
    secret, tls = _proofs(directory, plan, node_id)
    runtime = QuorumRuntime(config, storage, member, _end, secrets=secret, tls=tls)
    member.attach(runtime)
    # What start-up made lives for ever: the collector need not look at it again.
    gc.freeze()
    await runtime.start()
    try:
        await _answer(member.commands())
    finally:
        await runtime.stop()
        metadata.close()


def _proofs(directory: Path, plan: ClusterPlan, node_id: int) -> tuple[Secrets, QuorumTls | None]:
    """By what a voter knows the others, and they it: nothing, unless the cluster is secured."""
    if not plan.is_secured:
        return no_secret, None
    believed = read_secrets(directory / SECRET_NAME)
    files = TlsFiles(node_paths(directory, f"controller-{node_id}"), is_server=True, lets_clients_show=True)
    return lambda: believed, quorum_tls(files, plan.cluster_id)


async def _answer(commands: dict[str, Command]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        request = json.loads(line)
        try:
            answer = await commands[request.pop("command")](**request)
        except QuorateError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _end(error: BaseException) -> NoReturn:
    sys.stderr.write(f"member: {type(error).__name__}: {error}\n")
    sys.stderr.flush()
    os._exit(_FATAL)
