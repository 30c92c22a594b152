"""The measuring machine: processor, memory, device, and a bare fdatasync in the same directory."""

from __future__ import annotations

import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError

_MEMORY_FILESYSTEMS: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_FDATASYNC_SAMPLES: Final = 200
_LOOP_SAMPLES: Final = 5
#: What one commit of a small batch writes.
_FDATASYNC_BYTES: Final = 200


class NotADisk(QuorateError):
    """The directory lies in memory: an fsync there costs nothing and proves nothing."""


@dataclass(frozen=True, slots=True)
class MachineDescription:
    """The machine and the device, as far as they bear on the numbers."""

    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    directory: str
    filesystem: str
    device: str
    #: Median, ms, of an append of 200 bytes and its fdatasync.
    fdatasync_ms: float
    #: Processor time, ms, of adding up a million squares in Python: what one core is worth just now.
    loop_ms: float
    #: Runnable processes over the last minute, by the kernel's count: other work makes every figure worse.
    load_average: float

    def as_data(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)

    def sentence(self) -> str:
        """One line for people."""
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB, Linux {self.kernel}, "
            f"Python {self.python}; {self.filesystem} on {self.device}, bare fdatasync {self.fdatasync_ms:.3f} ms; "
            f"a million squares in {self.loop_ms:.0f} ms, load average {self.load_average:.1f}"
        )


def examine(directory: Path) -> MachineDescription:
    """Look at the machine, and measure fdatasync in ``directory``.

    Raises:
        NotADisk: the directory is on a memory file system.
    """
    filesystem, device = _mount_of(directory.resolve())
    if filesystem in _MEMORY_FILESYSTEMS:
        raise NotADisk(f"{directory} is on {filesystem}: name a directory on a disk with --dir")
    return MachineDescription(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        kernel=platform.release(),
        python=platform.python_version(),
        directory=str(directory),
        filesystem=filesystem,
        device=device,
        fdatasync_ms=fdatasync_ms(directory),
        loop_ms=_loop_ms(),
        load_average=os.getloadavg()[0],
    )


def _mount_of(path: Path) -> tuple[str, str]:
    best = ("", "unknown", "unknown")
    for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
        device, mount, filesystem, *_ = line.split()
        mount = mount.encode().decode("unicode_escape")
        if path.is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, filesystem, device)
    return best[1], best[2]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def fdatasync_ms(directory: Path) -> float:
    """Median time of appending 200 bytes to a file and making them durable, nothing else."""
    path = directory / "fdatasync-probe"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        samples = []
        for _ in range(_FDATASYNC_SAMPLES):
            os.write(fd, bytes(_FDATASYNC_BYTES))
            start = time.perf_counter()
            os.fdatasync(fd)
            samples.append((time.perf_counter() - start) * 1000)
        return statistics.median(samples)
    finally:
        os.close(fd)
        path.unlink()


def _loop_ms() -> float:
    samples = []
    for _ in range(_LOOP_SAMPLES):
        start = time.process_time()
        sum(number * number for number in range(1_000_000))
        samples.append((time.process_time() - start) * 1000)
    return statistics.median(samples)
