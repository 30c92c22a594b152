"""Voters as child processes of a benchmark, spoken to over their standard input and output, a JSON line each way.

A member ends when its input ends: nothing is left behind however the benchmark dies.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.protection import Safeguard
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import free_ports

_ANSWER_S: Final = 60.0
_LEADER_S: Final = 15.0
_STOP_S: Final = 5.0
_POLL_S: Final = 0.01
_VOTERS: Final = 3
#: Quorum and HTTP.
_PORTS_PER_VOTER: Final = 2
_LINE_BYTES_MAX: Final = 64 * 1024 * 1024


class MemberFailed(QuorateError):
    """A member ended, did not answer, or answered with an error."""


class BenchmarkMember:
    """One child process."""

    def __init__(self, node_id: int, process: asyncio.subprocess.Process) -> None:
        self.node_id = node_id
        self._process = process

    @classmethod
    async def start(cls, module: str, node_id: int, directory: Path, workspace: Workspace) -> BenchmarkMember:
        """Start ``python -m module`` for one node of the cluster in ``directory``."""
        arguments = [str(directory), str(node_id)]
        if workspace.profile_directory is not None:
            arguments.append(str(workspace.profile_directory))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_BYTES_MAX,
        )
        return cls(node_id, process)

    async def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return its answer.

        Raises:
            MemberFailed: it ended, did not answer in time, or could not do it.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _ANSWER_S)
        except TimeoutError as error:
            raise MemberFailed(f"member {self.node_id} did not answer {command} in {_ANSWER_S:.0f} s") from error
        if not line:
            raise MemberFailed(f"member {self.node_id} ended during {command}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise MemberFailed(f"member {self.node_id}, {command}: {answer['error']}")
        return answer

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def stop(self) -> None:
        """End it: in order, or by force."""
        if self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_S)
        except TimeoutError:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()


@asynccontextmanager
async def running_members(module: str, workspace: Workspace) -> AsyncIterator[list[BenchmarkMember]]:
    """A fresh cluster of three, led; the leader first. All of them are stopped afterwards.

    With TLS they speak it to each other, and prove a secret.
    """
    ports = Ports.of(free_ports(_VOTERS * _PORTS_PER_VOTER))
    is_secured = Safeguard.TLS in workspace.protection
    plan = make_fresh(workspace.directory / "cluster", ports, _VOTERS, 0, is_secured=is_secured)
    members: list[BenchmarkMember] = []
    try:
        for controller in plan.controllers:
            # One by one, so that a failure finds those before it in the list.
            member = await BenchmarkMember.start(module, controller.id, workspace.directory / "cluster", workspace)
            members.append(member)
        leader_id = await _leader(members)
        members.sort(key=lambda member: member.node_id != leader_id)
        yield members
    finally:
        await asyncio.gather(*(member.stop() for member in members))


async def _leader(members: list[BenchmarkMember]) -> int:
    async with asyncio.timeout(_LEADER_S):
        while True:
            answers = await asyncio.gather(*(member.ask("status") for member in members))
            leaders = {answer["leader"] for answer in answers}
            if len(leaders) == 1 and None not in leaders and any(answer["leads"] for answer in answers):
                return int(leaders.pop())
            await asyncio.sleep(_POLL_S)


async def processor_times(members: list[BenchmarkMember]) -> list[float]:
    """Seconds that each member's process has used so far."""
    return [float((await member.ask("status"))["cpu_s"]) for member in members]


def load_plan(directory: Path) -> ClusterPlan:
    """The plan that a member was started with."""
    plan = ClusterPlan.load(directory)
    if plan is None:
        raise QuorateError(f"{directory} holds no cluster")
    return plan
