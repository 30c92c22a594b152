"""`scripts/netsim`: the most telling networks, for seconds instead of minutes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.scripts.networks.command import NOT_HERE
from tests.waiting import eventually_sync

ROOT = Path(__file__).resolve().parents[3]
END_S = 280


def netsim(workplace: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "quorate.scripts.networks", "run", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(workplace)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_of(workplace: Path) -> list[str]:
    """Command lines of the processes that work there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if str(workplace) in line:
            found.append(line)
    return found


def require_namespaces(exit_code: int, said: str) -> None:
    if exit_code == NOT_HERE:
        pytest.skip(said.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("scenario", "seconds"), [("switch-outage", 7), ("leader-isolated", 2), ("lost-flow-table", 1)]
)
def test_network_scenario_short_run_holds(tmp_path: Path, scenario: str, seconds: int) -> None:
    report = tmp_path / "report"
    running = netsim(tmp_path, scenario, "--seconds", str(seconds), "--report", str(report))
    said, _ = running.communicate(timeout=END_S)
    require_namespaces(running.returncode, said)
    assert running.returncode == 0, said
    (result,) = report.glob("*.json")
    outcome = json.loads(result.read_text())
    assert outcome["noted"]["frames_lost_by_the_rules"] > 0, "nothing was done to the network"
    assert outcome["noted"]["elections"] > 0, "the leader did not mind"
    assert not processes_of(tmp_path)


def test_ctrl_c_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    running = netsim(tmp_path, "switch-outage")
    try:
        eventually_sync(
            lambda: running.poll() is not None or len(processes_of(tmp_path)) == 5, "all processes run", END_S
        )
        if running.returncode is not None:
            said, _ = running.communicate()
            require_namespaces(running.returncode, said)
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=END_S)
        assert running.returncode == 130, said
        assert "Traceback" not in said
        assert not processes_of(tmp_path)
        assert not list(tmp_path.iterdir())
    finally:
        running.kill()
        running.wait()
