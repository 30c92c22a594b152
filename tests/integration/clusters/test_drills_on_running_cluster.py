"""Drills on a cluster that goes on running: they borrow its processes, or command them, and leave it as it was."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from quorate.scripts.cluster.lending import RemoteControl
from quorate.scripts.cluster.plan import SOCKET_NAME, ClusterError, ClusterPlan
from tests.integration.clusters.test_local_cluster import base_port, command, get, ready_status, running_up
from tests.integration.commands import Ended, alone
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually_sync

BACK_S = 60.0


def is_whole(directory: Path, plan: ClusterPlan) -> bool:
    """Whether every process runs, and nothing is left of any drill."""
    for url in plan.controller_urls:
        status = get(f"{url}/v1/status", directory)
        if status is None or [v["role"] in ("active", "standby") for v in status["quorum"]["voters"]] != [True] * 3:
            return False
        if status["topics"] or [b["state"] for b in status["brokers"]] != ["active"] * len(plan.brokers):
            return False
    return True


def drill(directory: Path, *arguments: str) -> Ended:
    """To its end."""
    words = command("drill", "run", *arguments, "--on", str(directory))
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=200)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


async def borrow_and_leave(directory: Path, plan: ClusterPlan) -> None:
    """As a drill that is killed: it leaves a process dead and one frozen. Meanwhile nobody else gets them."""
    lent = await RemoteControl.borrow(directory)
    assert lent is not None
    with pytest.raises(ClusterError, match="lent to a drill: wait until it is over"):
        await RemoteControl.borrow(directory)
    await lent.kill([plan.members.controllers[1], plan.members.brokers[12]])
    await lent.pause(plan.members.controllers[2])
    await lent.end()


async def borrow_until_it_ends(directory: Path, supervisor: subprocess.Popen[str]) -> None:
    """As a drill under which the cluster is stopped: it hears so at once."""
    lent = await RemoteControl.borrow(directory)
    assert lent is not None
    lent.require_there()
    supervisor.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(supervisor.wait, BACK_S) == 0
    with pytest.raises(ClusterError, match="the process that runs the cluster has ended"):
        await lent.restore()
    with pytest.raises(ClusterError, match="the process that runs the cluster has ended"):
        lent.require_there()
    await lent.end()


def test_processes_of_a_running_cluster_are_lent_and_come_back(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--brokers", "3") as supervisor:
        ready_status(directory, 3)
        plan = ClusterPlan.load(directory)
        assert plan is not None
        eventually_sync(lambda: (directory / SOCKET_NAME).exists(), "it can be borrowed", BACK_S)

        outcome = json.loads(drill(directory, "leader-kill", "--json").out)
        assert outcome["verdict"] == "passed", outcome
        eventually_sync(lambda: is_whole(directory, plan), "the topics of the drill are gone", BACK_S)

        refused = drill(directory, "bit-flip")
        assert (refused.code, refused.out) == (1, "")
        assert "bit-flip changes or takes away controllers' files, and" in refused.err

        broken_off = subprocess.Popen(
            command("drill", "run", "rolling-restart", "--on", str(directory)), stderr=subprocess.PIPE, text=True
        )
        eventually_sync(
            lambda: any(get(f"{url}/v1/status", directory) is None for url in plan.controller_urls), "a fault", BACK_S
        )
        broken_off.send_signal(signal.SIGINT)  # Ctrl-C
        _, said = broken_off.communicate(timeout=BACK_S)
        assert broken_off.returncode == 130
        assert said == "quorate: rolling-restart was broken off by Ctrl-C, and has no outcome\n"
        eventually_sync(lambda: is_whole(directory, plan), "all is as it was", BACK_S)

        asyncio.run(borrow_and_leave(directory, plan))
        eventually_sync(lambda: is_whole(directory, plan), "all is as it was", BACK_S)
        assert supervisor.poll() is None

        asyncio.run(borrow_until_it_ends(directory, supervisor))
    assert supervisor.returncode == 0
    assert asyncio.run(RemoteControl.borrow(directory)) is None


async def test_named_cluster_is_drilled_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands kill a process by its id and start another; an operator's go through ssh or an orchestrator."""
    monkeypatch.chdir(tmp_path)  # in ./var are the certificates with which it is asked
    async with running_cluster(tmp_path / "var", 3, 3) as cluster:
        for process in cluster.controllers.values():
            (tmp_path / process.name).write_text(str(process.pid))
        kill = shlex.quote(f"kill -9 $(cat {tmp_path}/{{name}})")
        run = f"{sys.executable} -m quorate.scripts.cli controller --config {tmp_path}/var/{{name}}.toml"
        start = shlex.quote(f"{run} > {tmp_path}/{{name}}.log 2>&1 & echo $! > {tmp_path}/{{name}}")
        named = ("drill", "run", "leader-kill", "--on", ",".join(cluster.plan.controller_urls))
        try:
            ended = await alone(*named, "--json", "--kill-with", f"sh -c {kill}", "--start-with", f"sh -c {start}")
            in_vain = await alone(*named, "--kill-with", "true {host}", "--start-with", "true {id}")

            outcome = json.loads(ended.out)
            assert (ended.code, outcome["verdict"]) == (0, "passed"), outcome
            assert in_vain.code == 1
            assert "still answers 5 s after the command that ends it" in in_vain.out
            assert await cluster.topic_names() == set()
        finally:
            for node in cluster.controllers:
                with suppress(ProcessLookupError):
                    os.kill(int((tmp_path / f"controller-{node}").read_text()), signal.SIGKILL)
