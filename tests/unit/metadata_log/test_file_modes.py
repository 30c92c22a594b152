"""Files of a log hold credentials: nobody but the process's own user may look into them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.metadata_log.disk import OpenMode, RealDisk, replace_file


@pytest.fixture
def _open_handed() -> Iterator[None]:
    """Everything that is made is for everybody, unless whoever makes it says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_open_handed")
def test_what_a_disk_makes_is_for_its_owner(tmp_path: Path) -> None:
    disk, directory = RealDisk(), tmp_path / "made"
    disk.make_directory(str(directory))
    disk.open_file(str(directory / "log"), OpenMode.CREATE).close()
    disk.lock(str(directory / "lock")).release()
    for _ in replace_file(disk, str(directory), "state", b"x"):
        pass
    assert mode(directory) == 0o700
    assert {path.name: mode(path) for path in directory.iterdir()} == dict.fromkeys(("log", "lock", "state"), 0o600)


def test_what_a_command_makes_is_for_its_owner(tmp_path: Path) -> None:
    """Also where it, or a process that it starts, says nothing of it."""
    program = f"""
import os, pathlib, sys
os.umask(0)
sys.argv = ["quorate", "log"]
from quorate.scripts.cli import __main__ as cli
from quorate.scripts.terminal import command_line
def run(app, arguments):
    made = pathlib.Path({str(tmp_path)!r}) / "made"
    made.mkdir()
    (made / "table").write_text("x")
    os.system(f"touch {{made}}/by-child")
command_line.run = run
cli.main()
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
    made = tmp_path / "made"
    assert (mode(made), mode(made / "table"), mode(made / "by-child")) == (0o700, 0o600, 0o600)
