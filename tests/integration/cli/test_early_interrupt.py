"""Ctrl-C while a command is still importing what it needs."""

import signal
import subprocess
import sys
from typing import Literal

from quorate.scripts.terminal import exit_codes


def _interrupted_in_imports(usual: Literal["default", "ignore"]) -> tuple[int, str]:
    """Exit code and output of `quorate broker` that gets SIGINT when some of its libraries are there, and others not.

    It is told of no controllers: if it does not end, it says so, with another exit code. ``usual``: what is done about
    SIGINT when it begins.
    """
    with subprocess.Popen(
        [
            "env",
            f"--{usual}-signal=INT",
            sys.executable,
            "-P",
            "-X",
            "importtime",
            "-m",
            "quorate.scripts.cli",
            "broker",
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            if not line.startswith("import time:"):
                said.append(line)
            elif line.split("|")[-1].strip() == "typer":
                process.send_signal(signal.SIGINT)
        return process.wait(), "".join(said)


def test_ctrl_c_ends_the_command_without_a_stack_trace() -> None:
    assert _interrupted_in_imports("default") == (exit_codes.INTERRUPTED, "")


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    code, said = _interrupted_in_imports("ignore")
    assert (code, "ids: must be set" in said) == (exit_codes.REFUSED, True)
