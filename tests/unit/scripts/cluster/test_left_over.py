"""Processes that outlive their supervisor are ended by the next one, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.scripts.cluster.left_over import end_left_over, note, note_path
from quorate.scripts.cluster.process import ManagedProcess
from tests.architecture.source_tree import ROOT

#: Starts a child as a supervisor does, freezes it once it runs, and is killed.
KILLED_SUPERVISOR = """
import asyncio, os, signal, sys
from pathlib import Path
from quorate.scripts.cluster.process import ManagedProcess
from tests.waiting import eventually_sync

async def main():
    log = Path(sys.argv[1]) / f"{sys.argv[2]}.log"
    child = ManagedProcess(sys.argv[2], ("-c", sys.argv[3]), log)
    await child.start()
    eventually_sync(log.read_text, "it runs")
    child.pause()
    status = Path(f"/proc/{child.pid}/status")
    eventually_sync(lambda: "State:\tT" in status.read_text(), "it is frozen")
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
LIVES = "import time; print('it runs', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LIVES}"


def left_over(logs: Path, name: str, program: str) -> int:
    """A frozen child of a supervisor that was killed; its process id."""
    made = subprocess.run(
        [sys.executable, "-P", "-c", KILLED_SUPERVISOR, str(logs), name, program],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert made.returncode == -signal.SIGKILL
    return int(made.stdout)


def said_of(name: str, pid: int) -> str:
    return f"{name} (process {pid}) had outlived whoever ran it, and has been ended"


def state(pid: int) -> str:
    """As of ``/proc``; empty where there is none, or it waits to be asked how it ended."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
    return "" if letter == "Z" else letter


def test_frozen_process_of_a_killed_supervisor_is_ended(tmp_path: Path) -> None:
    pid = left_over(tmp_path, "controller-2", LIVES)
    try:
        assert state(pid) == "T"
        assert end_left_over(tmp_path) == [said_of("controller-2", pid)]
        assert state(pid) == ""
        assert end_left_over(tmp_path) == []
    finally:
        if state(pid):
            os.kill(pid, signal.SIGKILL)


def test_process_that_does_not_end_in_order_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.scripts.cluster.left_over._ORDERLY_S", 0.1)
    pid = left_over(tmp_path, "broker-11", DEAF)
    assert end_left_over(tmp_path) == [said_of("broker-11", pid)]
    assert state(pid) == ""


async def test_process_that_is_supervised_is_left_alone(tmp_path: Path) -> None:
    child = ManagedProcess("controller-1", ("-c", LIVES), tmp_path / "controller-1.log")
    await child.start()
    try:
        assert end_left_over(tmp_path) == []
        assert child.is_running
    finally:
        child.kill()
        await child.wait(30.0)
    assert not note_path(tmp_path / "controller-1.log").exists()


@pytest.mark.parametrize("damage", ["other", "garbage", "huge", "empty", "half", "endless"])
def test_process_that_is_another_than_was_noted_is_left_alone(tmp_path: Path, damage: str) -> None:
    """The number was given away since, or the note is damaged."""
    bystander = subprocess.Popen([sys.executable, "-c", LIVES])
    try:
        path = note_path(tmp_path / "controller-1.log")
        note(path, bystander.pid)
        child, _, supervisor = path.read_text().strip().partition(" ")
        number, started, boot = child.split("@")
        gone = f"1{supervisor}"
        path.write_text(
            {
                "other": f"{number}@{int(started) + 1}@{boot} {gone}\n",
                "garbage": f"{number} no@process\n",
                "huge": f"{10**30}@{started}@{boot} {gone}",
                "empty": "",
                "half": child,
                "endless": f"{child} {gone}" * 1_000,
            }[damage]
        )
        assert end_left_over(tmp_path) == []
        assert bystander.poll() is None
        path.write_text(f"{child} {gone}\n")
        assert end_left_over(tmp_path) == [said_of("controller-1", bystander.pid)], "the note kept it alive"
    finally:
        bystander.kill()
        bystander.wait()
