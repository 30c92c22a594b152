"""One supervised child process. Faults are the product here: besides start and stop it can be killed and frozen."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.left_over import note, note_path
from quorate.scripts.worker_pool import die_with_parent

_LOG_TAIL_BYTES: Final = 4_000


class ProcessFailed(QuorateError):
    """A child process ended that should be running, or does not end."""


class ManagedProcess:
    """A child with its output in a log file. It gets SIGTERM when this process dies, however it dies.

    A note beside the log lets the next supervisor find it where it does not end by that (``cluster.left_over``).
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        log_path: Path,
        settings: Mapping[str, str] | None = None,
        enter: Callable[[], None] = lambda: None,
    ) -> None:
        """``arguments`` of the Python interpreter; ``settings``: environment variables on top of the own ones.

        ``enter`` is called in the child before the interpreter is loaded: it goes where the child is to run.
        """
        self.name = name
        self._python = sys.executable
        self._arguments = list(arguments)
        self._environment = {**os.environ, **(settings or {})}
        self._log_path = log_path
        self._note_path = note_path(log_path)
        self._enter = enter
        self._process: asyncio.subprocess.Process | None = None
        #: Whether its end was asked for.
        self._was_told = False
        #: Whether it was frozen and not thawed.
        self._is_frozen = False

    def change(self, settings: Mapping[str, str | None], python: Path | None = None) -> None:
        """Let it run otherwise from its next start on.

        Args:
            settings: as environment variables; None: not set any more. python: the interpreter; None: this one's.
        """
        changed = {**self._environment, **settings}
        self._environment = {name: value for name, value in changed.items() if value is not None}
        self._python = sys.executable if python is None else str(python)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Started and not ended (a frozen one is running)."""
        return self._process is not None and self._process.returncode is None

    @property
    def is_frozen(self) -> bool:
        """Running, and not getting anywhere."""
        return self._is_frozen and self.is_running

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last run; negative for a signal."""
        return None if self._process is None else self._process.returncode

    async def start(self) -> None:
        """Start it, in a session of its own: a Ctrl-C at the terminal is for the supervisor, which ends it in order."""
        if self.is_running:
            return
        self._was_told = self._is_frozen = False
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                self._python,
                "-P",  # nothing in the directory where it is started takes the place of a package
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=self._begin,
            )
        note(self._note_path, self._process.pid)

    def _begin(self) -> None:
        die_with_parent()
        self._enter()

    def kill(self) -> None:
        """SIGKILL: no goodbye."""
        self._was_told = True
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: frozen, sockets open."""
        self._signal(signal.SIGSTOP)
        self._is_frozen = True

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)
        self._is_frozen = False

    def terminate(self) -> None:
        """SIGTERM: please end."""
        self._was_told = True
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            self._process.send_signal(number)

    async def wait(self, timeout_s: float) -> int:
        """The exit code once it has ended.

        Raises:
            ProcessFailed: it is still running after the time.
        """
        if self._process is None:
            return 0
        try:
            code = await asyncio.wait_for(self._process.wait(), timeout_s)
        except TimeoutError as error:
            raise ProcessFailed(f"{self.name} did not end within {timeout_s:.0f} s") from error
        self._note_path.unlink(missing_ok=True)
        return code

    async def stop(self, timeout_s: float, patience_s: float | None = None) -> int | None:
        """End it in order, or by force after the time; its exit code.

        Args:
            patience_s: after so long it is asked once more, which to a broker means: at once.
        """
        self.resume()
        self.terminate()
        try:
            if patience_s is not None:
                with suppress(ProcessFailed):
                    return await self.wait(patience_s)
                self.terminate()
            await self.wait(timeout_s)
        except ProcessFailed:
            self.kill()
            await self.wait(timeout_s)
        return self.exit_code

    @property
    def has_failed(self) -> bool:
        """Whether it has ended without being told to."""
        return self._process is not None and not self.is_running and not self._was_told

    def check(self) -> None:
        """Raise ``ProcessFailed`` with the end of its log if it has failed."""
        if self.has_failed:
            raise ProcessFailed(self.obituary())

    def obituary(self) -> str:
        """The end of the process, with the last line of its log."""
        code = self.exit_code
        # What a signal ended did not know of it: its last line is where it was, not why.
        words = ", the last line of its log" if code is not None and code < 0 else ""
        return f"{self.name} {self.end}{words}: {self.last_words()}"

    @property
    def end(self) -> str:
        """The end of the process: "ended with exit code 1", "was ended by SIGKILL"; empty while it runs, and before."""
        code = self.exit_code
        if code is None:
            return ""
        if code >= 0:
            return f"ended with exit code {code}"
        known = {number.value: number.name for number in signal.Signals}
        return f"was ended by {known.get(-code, f'signal {-code}')}"

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return "it left no log"
        return next((line for line in reversed(lines) if line.strip()), f"nothing in {self._log_path}")
