"""Wheels, built of what is there already: no test needs a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

WAIT_S: Final = 120
UV: Final = (sys.executable, "-P", "-m", "uv")


def built_wheel(source: Path, directory: Path) -> Path:
    """The wheel of a tree of the project, in a directory in which no other one is."""
    command = [*UV, "build", "--quiet", "--wheel", "--offline", "--out-dir", str(directory), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    if done.returncode and "offline" in done.stderr:
        pytest.skip("what wheels are built with is not in uv's cache")
    assert done.returncode == 0, done.stderr
    (wheel,) = directory.glob("*.whl")
    return wheel
