"""Processes that outlive whoever started them: found again by the next one, and ended.

A child is sent SIGTERM when its supervisor dies, however it dies; but a frozen one takes no signal, and one that ends
in order takes its time. Until then it holds its ports and its directory. So a note beside its log says which process it
is: its number, when it was started, since which boot; and the same of its supervisor. No other process is all of that.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from quorate.scripts.cluster.plan import ClusterError

_SUFFIX: Final = ".pid"
_NOTE_BYTES_MAX: Final = 200
#: To end in order, as SIGTERM tells it, before it is killed.
_ORDERLY_S: Final = 5.0
#: For the kernel to take a killed one away.
_KILLED_S: Final = 10.0
#: Fields of ``/proc/PID/stat`` behind the name, which may hold anything: state, and ticks from boot to start.
_STATE, _STARTED = 0, 19


class LeftOver(NamedTuple):
    """A process whose supervisor has ended."""

    name: str
    pid: int
    #: Of the kernel's, for this very process: its number may be given away.
    handle: int


def note_path(log_path: Path) -> Path:
    """The file in which the process of a log is noted."""
    return log_path.with_suffix(_SUFFIX)


def note(path: Path, pid: int) -> None:
    """Write down a child of this process; on a full disk it goes without."""
    with suppress(OSError):
        path.write_text(f"{_mark(pid)} {_mark(os.getpid())}\n", encoding="ascii")


def end_left_over(logs: Path) -> Sequence[str]:
    """End the processes that are noted in a directory and that nobody supervises any more; a sentence on each.

    In order where they can, for 5 s: they have been told already, and some were frozen.

    Raises:
        ClusterError: one does not end, or is another user's.
    """
    with ExitStack() as handles:
        found = list(_left_over(logs, handles))
        for one in found:
            _signal(one, signal.SIGTERM)
            _signal(one, signal.SIGCONT)
        deadline = time.monotonic() + _ORDERLY_S
        for one in found:
            if not _ends_within(deadline - time.monotonic(), one):
                _signal(one, signal.SIGKILL)
                if not _ends_within(_KILLED_S, one):
                    raise ClusterError(f"process {one.pid} ({one.name}) is left over, and does not end after SIGKILL")
        return [f"{one.name} (process {one.pid}) had outlived whoever ran it, and has been ended" for one in found]


def _left_over(logs: Path, handles: ExitStack) -> Iterator[LeftOver]:
    for path in sorted(logs.glob(f"*{_SUFFIX}")):
        with suppress(OSError, ValueError, OverflowError), path.open("rb") as file:
            child, supervisor = file.read(_NOTE_BYTES_MAX).decode("ascii").split()
            pid = int(child.partition("@")[0])
            handle = os.pidfd_open(pid)
            handles.callback(os.close, handle)
            if _mark(pid) == child and _mark(int(supervisor.partition("@")[0])) != supervisor:
                yield LeftOver(path.stem, pid, handle)


def _signal(one: LeftOver, number: signal.Signals) -> None:
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(one.handle, number)
    except PermissionError as error:
        raise ClusterError(f"process {one.pid} ({one.name}) is left over, and another user's: end it first") from error


def _ends_within(seconds: float, one: LeftOver) -> bool:
    """Whether it has ended by then."""
    waiting = select.poll()
    waiting.register(one.handle, select.POLLIN)
    return bool(waiting.poll(max(0.0, seconds) * 1000))


def _mark(pid: int) -> str:
    """The mark that no other process has; empty when there is none, or it has ended and nobody has asked how."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return "" if fields[_STATE] in (b"Z", b"X") else f"{pid}@{fields[_STARTED].decode()}@{boot}"
