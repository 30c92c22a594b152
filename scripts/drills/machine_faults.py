"""Faults of the machine that a controller runs on: its disk calls, wall clock and sockets fail as a file says.

Nothing else of the process is replaced. The file is JSON, read again whenever it changes; without it nothing fails.
What its fields mean: ``MachineFaults``.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import quorate.metadata_log.disk
import quorate.quorum.transport.connection

_LOOK_S: Final = 0.02
#: Never set: to wait for it is to hold up the thread.
_NEVER: Final = threading.Event()


@dataclass(slots=True)
class MachineFaults:
    """The faults of the moment. Written by one thread, read by others; every field stands for itself."""

    #: Every sync takes so much longer.
    sync_delay_ms: float = 0.0
    #: Writes fail: the disk is full, or read only.
    is_full: bool = False
    is_read_only: bool = False
    #: Wall clock, ahead of the true time.
    clock_ahead_ms: float = 0.0
    #: Peers whose bytes do not arrive here; they come when the peer is heard again, as with TCP.
    deaf_to: tuple[int, ...] = ()

    def save(self, path: Path) -> None:
        """For a process to read; whole or not at all."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps({name: getattr(self, name) for name in self.__slots__}), encoding="utf-8")
        os.replace(part, path)


def install(faults: MachineFaults) -> None:
    """Put the faults between the process and its machine."""
    _install_disk(faults)
    _install_clock(faults)
    _install_sockets(faults)


def watch(faults: MachineFaults, path: Path) -> None:
    """Follow the file, for ever."""
    seen = 0
    while True:
        try:
            changed = path.stat().st_mtime_ns
            if changed != seen:
                seen = changed
                for name, value in json.loads(path.read_text(encoding="utf-8")).items():
                    setattr(faults, name, tuple(value) if isinstance(value, list) else value)
        except FileNotFoundError:
            pass
        _NEVER.wait(_LOOK_S)


def _install_disk(faults: MachineFaults) -> None:
    file = quorate.metadata_log.disk.RealFile
    sync, pwrite = os.fdatasync, file.pwrite

    def slow_sync(descriptor: int) -> None:
        _NEVER.wait(faults.sync_delay_ms / 1000)  # the caller is held up, as by a disk
        sync(descriptor)

    def refusing_pwrite(self: Any, data: Any, position: int) -> None:
        if faults.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if faults.is_read_only:
            raise OSError(errno.EROFS, "Read-only file system")
        pwrite(self, data, position)

    os.fdatasync = slow_sync  # type: ignore[assignment]  # where the system is asked, so that the process measures it
    file.pwrite = refusing_pwrite  # type: ignore[method-assign]


def _install_clock(faults: MachineFaults) -> None:
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + faults.clock_ahead_ms / 1000
    time.time_ns = lambda: nanoseconds() + int(faults.clock_ahead_ms * 1_000_000)


def _install_sockets(faults: MachineFaults) -> None:
    connection = quorate.quorum.transport.connection.PeerConnection
    receive: Callable[[Any, bytes], None] = connection.data_received
    #: What came from peers that are not heard, by connection, in order.
    held: dict[Any, list[bytes]] = {}

    def deaf_receive(self: Any, data: bytes) -> None:
        peer = _peer(self)
        if self not in held and peer not in faults.deaf_to:
            receive(self, data)
            return
        if self not in held:
            held[self] = []
            asyncio.get_running_loop().call_later(_LOOK_S, hear, self)
        held[self].append(data)

    def hear(self: Any) -> None:
        if _peer(self) in faults.deaf_to and self.is_open:
            asyncio.get_running_loop().call_later(_LOOK_S, hear, self)
            return
        for data in held.pop(self):
            if self.is_open:
                receive(self, data)

    connection.data_received = deaf_receive  # type: ignore[method-assign]


def _peer(connection: Any) -> int | None:
    if connection.hello is not None:
        return int(connection.hello.node_id)
    return None if connection._dialled is None else int(connection._dialled[0])
