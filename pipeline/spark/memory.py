"""The memory limit of Spark's JVM: bounded by default, and below what the machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from quorate.pipeline.errors import BadSetting

_MIB: Final = 2**20
_UNITS: Final = {"k": 2**10, "m": _MIB, "g": 2**30, "t": 2**40}

#: No job of ours needs more: what is large is in files and in the Python workers.
_DEFAULT_BYTES_MAX: Final = 4 * 2**30
#: Below it Spark refuses to start: 300 MB that it reserves, half as much again.
_BYTES_MIN: Final = 512 * _MIB

#: Where a container's limit stands, by version of control groups.
_CGROUP_FILES: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_bytes() -> int:
    """Return how much memory this process could have at most: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [Path(name).read_text(encoding="ascii").strip() for name in _CGROUP_FILES if Path(name).is_file()]
    return min([machine, *(int(limit) for limit in limits if limit.isdecimal())])


def driver_memory(asked: str | None, machine: int) -> str:
    """Return the heap of the driver's JVM as Spark takes it: what was asked for, else a third of the machine.

    The default is 4 GB at most.

    Args:
        asked: digits and one of k, m, g, t, as `2g`; None = the default.
        machine: bytes that there are.

    Raises:
        BadSetting: no such size, below what Spark starts with, or more than there is.
    """
    if asked is None:
        return f"{max(_BYTES_MIN, min(_DEFAULT_BYTES_MAX, machine // 3)) // _MIB}m"
    size = re.fullmatch(r"(\d{1,9})([kmgt])b?", asked.lower())
    if size is None:
        raise BadSetting(f"driver memory {asked!r} is no size: give digits and a unit, as 2g or 1500m")
    wanted = int(size[1]) * _UNITS[size[2]]
    if wanted < _BYTES_MIN:
        raise BadSetting(f"driver memory {asked} is too little for Spark: give {_BYTES_MIN // _MIB}m or more")
    if wanted > machine:
        raise BadSetting(f"driver memory {asked} is more than the {machine // _MIB} MiB that there are here")
    return f"{wanted // _MIB}m"
