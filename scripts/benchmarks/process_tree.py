"""Resources of a program and all that it starts: processor time, and the most memory of each kind of process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LOOK_S: Final = 0.25
_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: The modules that Python workers are forked from: on one machine ours, else Spark's.
_WORKERS: Final = frozenset((b"quorate.pipeline.jobs.worker_daemon", b"pyspark.daemon"))
#: Fields of /proc/PID/stat behind the name.
_PARENT, _USER, _SYSTEM = 1, 11, 12


@dataclass(slots=True)
class TreeUse:
    """By process: what was seen at the last look at it. A process of less than a quarter of a second may be missed."""

    #: By process id: what it is.
    kinds: dict[int, str] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    peak_mb: dict[int, int] = field(default_factory=dict)

    def by_kind(self) -> dict[str, dict[str, float]]:
        """For each kind: processes, processor seconds of all, the most memory of one in MB."""
        found: dict[str, dict[str, float]] = {}
        for process, kind in sorted(self.kinds.items()):
            one = found.setdefault(kind, {"processes": 0, "processor_s": 0.0, "peak_mb": 0})
            one["processes"] += 1
            one["processor_s"] = round(one["processor_s"] + self.seconds.get(process, 0.0), 1)
            one["peak_mb"] = max(one["peak_mb"], self.peak_mb.get(process, 0))
        return found


@contextmanager
def watch_tree(root: int) -> Iterator[TreeUse]:
    """Look at a process and all its descendants until the block ends."""
    use = TreeUse()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            for process in _descendants(root):
                with suppress(OSError, ValueError, IndexError):
                    _note(use, process, root)

    watching = threading.Thread(target=look, name="process-tree", daemon=True)
    watching.start()
    try:
        yield use
    finally:
        ended.set()
        watching.join()


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parents[int(entry.name)] = int(_stat(int(entry.name))[_PARENT])
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _stat(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _note(use: TreeUse, process: int, root: int) -> None:
    fields = _stat(process)
    use.seconds[process] = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            use.peak_mb[process] = int(line.split()[1]) // 1024
    command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    if not command[0]:
        return  # it has ended, and nobody has taken note yet
    name = os.path.basename(command[0].decode(errors="replace"))
    kind = "JVM" if name == "java" else "Python worker" if _WORKERS.intersection(command) else "driver"
    use.kinds[process] = kind if process != root else "driver"


def resident_bytes(pid: int | None = None) -> int:
    """Memory that a process, this one by default, has at the moment."""
    pages = int(Path(f"/proc/{'self' if pid is None else pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
