"""The shell that the commands of a documented session are run in."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from quorate.metadata_log.errors import QuorateError

#: A command that takes longer has failed; so has one in the background that is not ready by then.
_DEADLINE_S: Final = 300.0
_READY: Final = "ready"


class SessionFailed(QuorateError):
    """A command did not end, or was not ready, in time."""


class BashShell:
    """Runs commands one after the other in one directory. What it left in the background ends with the block."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """``environment``: all that the commands' environment holds."""
        self._directory = directory
        self._environment = dict(environment)
        self._background: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._background:
            os.killpg(process.pid, signal.SIGINT)
        for process in self._background:
            try:
                process.wait(_DEADLINE_S)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            if process.stdout is not None:
                process.stdout.close()

    def run(self, command: str) -> list[str]:
        """The lines that a command printed, with its exit code as the last one where it is not 0.

        Raises:
            SessionFailed: it did not end in time, or one in the background is not ready by then.
        """
        if command.endswith(" &"):
            return self._begun(command.removesuffix(" &"))
        process = self._start(command, subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise SessionFailed(f"not over within {_DEADLINE_S:.0f} s: {command}\n{output}{errors}") from None
        if process.returncode == 0:
            return _lines(output)
        return [*_lines(output), *_lines(errors), f"[exit code {process.returncode}]"]

    def _start(self, command: str, errors: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def _begun(self, command: str) -> list[str]:
        process = self._start(command, subprocess.STDOUT)
        self._background.append(process)
        assert process.stdout is not None
        lines: list[str] = []
        ends_at = time.monotonic() + _DEADLINE_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not (lines and _READY in lines[-1]):
                # Unbuffered reading of lines: what is in a buffer of ours would not wake the selector.
                if not selector.select(max(0.0, ends_at - time.monotonic())):
                    raise SessionFailed(f"not ready within {_DEADLINE_S:.0f} s: {command}\n" + "\n".join(lines))
                line = _line(process.stdout.fileno())
                if not line:
                    raise SessionFailed(f"ended before it was ready: {command}\n" + "\n".join(lines))
                lines.append(line.rstrip())
        return lines[-1:]


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _line(descriptor: int) -> str:
    """The next line, with its end; empty: there is none any more."""
    found = bytearray()
    while not found.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            break
        found += byte
    return found.decode()
