"""Tests on examples that are drawn anew, and in another order, by pytest in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.worker_pool import die_with_parent

ROOT: Final = Path(__file__).resolve().parents[2]
#: What pytest may say without a fault of its own: all passed, some failed, it was interrupted.
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
#: For an end of its own once it is interrupted (seconds): what failed is on disk already.
_END_SECONDS: Final = 3.0


class PytestFailed(QuorateError):
    """Pytest could not do its work: no test says anything then."""


def run_tests(selection: Sequence[str], seed: int, directory: Path, deadline: float) -> None:
    """Run these tests, their examples and their order drawn from a seed; each that fails is written to the directory.

    Args:
        selection: arguments of pytest.
        deadline: of ``time.monotonic``; what runs then is broken off.

    Raises:
        PytestFailed: it ended without a verdict.
        KeyboardInterrupt: Ctrl-C was pressed; pytest has ended, too.
    """
    drawn = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}", f"--randomly-seed={seed}"]
    found = ["-p", "tests.guards.findings", f"--findings={directory}"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup", *drawn, *found, *selection]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # A session of its own: Ctrl-C is ours, and pytest is told once.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509  # prctl
    ) as pytest:
        try:
            ended = pytest.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _interrupt(pytest)
            return
        except KeyboardInterrupt:
            _interrupt(pytest)
            raise
    if ended not in (_PASSED, _FAILED):
        raise PytestFailed(f"pytest ended with {ended}: {' '.join(command)}")


def _interrupt(pytest: subprocess.Popen[bytes]) -> None:
    pytest.send_signal(signal.SIGINT)
    try:
        pytest.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(pytest.pid, signal.SIGKILL)
