"""What ``scripts/simulate`` says, and how it ends: as a process, as it is used."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.waiting import eventually_sync

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", [[], ["--system"]])
def test_ctrl_c_ends_a_long_run_with_a_sentence_and_130(kind: list[str]) -> None:
    command = ["scripts/simulate", *kind, "--seeds", "5000", "--jobs", "1"]
    with subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        try:
            eventually_sync(lambda: _has_workers(run.pid), "a process that runs seeds")
            os.killpg(run.pid, signal.SIGINT)  # as a terminal does
            said, complained = run.communicate(timeout=60)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 130, complained
    assert "of 5000 seeds" in complained
    assert "Traceback" not in said + complained


def _has_workers(pid: int) -> bool:
    """Whether it is the simulation by now, and no more the launcher, and has begun its processes."""
    process = Path(f"/proc/{pid}")
    if b"quorate.scripts.simulation" not in (process / "cmdline").read_bytes():
        return False
    children = (process / f"task/{pid}/children").read_text().split()
    return any(_ignores_ctrl_c(child) for child in children)


def _ignores_ctrl_c(pid: str) -> bool:
    (mask,) = re.findall(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(mask, 16) & 1 << (signal.SIGINT - 1))


def test_nodes_log_lines_are_shown_of_one_seed_alone() -> None:
    """This seed has a leader that gives up for its disk, and says so."""
    alone = _simulate("--seeds", "1", "--seed", "100007")
    among_others = _simulate("--seeds", "2", "--seed", "100007")

    assert "gives up leadership" in alone.stderr
    assert among_others.stderr == ""


def _simulate(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["scripts/simulate", *options], cwd=ROOT, text=True, capture_output=True, check=True, timeout=60
    )
