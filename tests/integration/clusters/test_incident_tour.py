"""docs/tour-incident.md on a real cluster: its commands print today what stands there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quorate.scripts.cluster.ports import free_stretch


@pytest.mark.timeout(600)
def test_session_of_the_incident_prints_what_is_written_there() -> None:
    program = [sys.executable, "-P", "-m", "quorate.scripts.tour.incident"]
    command = [*program, "--check", "--base-port", str(free_stretch(16))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr
