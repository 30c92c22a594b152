"""A disk in memory that knows what a crash leaves: the page cache and the durable content apart, names included.

It implements ``metadata_log.disk.Disk``. Writes and truncations of a file are pending until it is synced; names that
were created, renamed or unlinked are pending until their directory is. ``power_cut`` loses what is pending, as its
policy says; ``kill`` loses nothing but the handles, as when a process dies. Faults: a failing sync (after which the
cache shows bytes that no later sync will bring to the disk, as on Linux), a full disk, flipped bits.
All choices come from the generator given, so a seed reproduces a run.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

from quorate.metadata_log.disk import Buffer, OpenMode, removed
from quorate.scripts.simulation.machine.inode import CrashPolicy, Inode, apply, drawn, kept

__all__ = ["CrashPolicy", "MemoryDisk", "MemoryFile", "MemoryLock", "StaleHandle"]


#: A pending change of a directory: names that go, and a name that comes with what it means; one atomic step.
_NameChange = tuple[str | None, tuple[str, Inode] | None]


class StaleHandle(Exception):
    """A file handle was used after the crash of the process that had it: a fault of the simulation."""


class MemoryDisk:
    """See the module. ``on_call(operation, path)`` runs before every call and may raise to make the call fail."""

    def __init__(self, rng: Random, capacity: int | None = None) -> None:
        self._rng = rng
        #: Bytes that fit; None = no bound.
        self.capacity = capacity
        self.on_call: Callable[[str, str], None] = lambda operation, path: None
        self._names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._pending_names: dict[str, list[_NameChange]] = {}
        self._locks: set[str] = set()
        self._failing_syncs: set[str] = set()
        #: Paths of the handles that the process has open, one entry each.
        self.open_handles: list[str] = []
        #: Raised by every crash; a handle of an older generation is dead.
        self.generation = 0
        #: Raised by everything that changes what a power cut would leave; and by what changes names in it.
        self.durable_changes = self.durable_name_changes = 0

    # --- Disk ----------------------------------------------------------------------------------------

    def open_file(self, path: str, mode: OpenMode) -> MemoryFile:
        self.on_call("open", path)
        inode = self._names.get(path)
        if mode is OpenMode.CREATE:
            if inode is not None:
                raise FileExistsError(errno.EEXIST, "exists", path)
            self._require_directory(_parent(path))
            inode = Inode()
            self._change_names(path, None, (path, inode))
        elif inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if inode.is_directory:
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        self.open_handles.append(path)
        return MemoryFile(self, path, inode, is_writable=mode is not OpenMode.READ)

    def exists(self, path: str) -> bool:
        self.on_call("exists", path)
        return path in self._names

    def list_directory(self, path: str) -> list[str]:
        self.on_call("list", path)
        path = path.rstrip("/")
        self._require_directory(path)
        prefix = f"{path}/"
        return sorted(name[len(prefix) :] for name in self._names if _parent(name) == path)

    def make_directory(self, path: str) -> None:
        self.on_call("mkdir", path)
        if path in self._names:
            raise FileExistsError(errno.EEXIST, "exists", path)
        self._require_directory(_parent(path))
        self._change_names(path, None, (path, Inode(is_directory=True)))

    def rename(self, old: str, new: str) -> None:
        self.on_call("rename", old)
        if _parent(old) != _parent(new):
            raise ValueError(f"{old} and {new} are in different directories")
        if old not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        self._change_names(old, old, (new, self._names[old]))

    def unlink(self, path: str) -> None:
        self.on_call("unlink", path)
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._change_names(path, path, None)

    def sync_directory(self, path: str) -> None:
        self.on_call("sync_directory", path)
        path = path.rstrip("/")
        self._require_directory(path)
        self._fail_if_asked(path)
        changes = self._pending_names.pop(path, [])
        if changes:
            self._note_changed_names()
        for change in changes:
            _apply_names(self._durable_names, change)

    def free_bytes(self, path: str) -> int:
        self.on_call("free", path)
        return 1 << 40 if self.capacity is None else max(self.capacity - self.used, 0)

    def lock(self, path: str) -> MemoryLock:
        self.on_call("lock", path)
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, "held by another process", path)
        if path not in self._names:
            self._require_directory(_parent(path))
            self._change_names(path, None, (path, Inode()))
        self._locks.add(path)
        return MemoryLock(self._locks, path)

    # --- crashes and faults --------------------------------------------------------------------------

    def kill(self) -> None:
        """The process dies: handles and locks are gone, every byte it wrote is still in the cache."""
        self.generation += 1
        self.open_handles.clear()
        self._locks.clear()

    def power_cut(self, policy: CrashPolicy) -> None:
        """The machine dies: of what was not synced that remains which ``policy`` says."""
        self.kill()
        self._note_changed_names()
        for path in sorted(self._pending_names):
            changes = self._pending_names[path]
            for change in changes[: kept(drawn(policy, self._rng), len(changes), self._rng)]:
                _apply_names(self._durable_names, change)
        self._pending_names.clear()
        for path in sorted(self._durable_names):
            # A directory whose name was lost takes along what is in it; parents come first in this order.
            if _parent(path) and _parent(path) not in self._durable_names:
                del self._durable_names[path]
        self._names = dict(self._durable_names)
        for path in sorted(self._names):
            self._names[path].settle(drawn(policy, self._rng), self._rng)
        self._failing_syncs.clear()

    def fail_next_sync(self, path: str) -> None:
        """Let the next sync of this file or directory raise EIO; of the file's pending changes some may be lost."""
        self._failing_syncs.add(path)

    def spare_syncs(self) -> None:
        """Take back every failure that was asked for and has not happened."""
        self._failing_syncs.clear()

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """Rot: one bit of a file is another, on the disk and in the cache."""
        inode = self._names[path]
        for content in (inode.cached, inode.durable):
            if position < len(content):
                content[position] ^= 1 << bit
        inode.changed_from = 0
        self.durable_changes += 1

    def content(self, path: str) -> bytes:
        """The bytes that a process reads now."""
        return bytes(self._names[path].cached)

    def durable_content(self, path: str) -> bytes:
        """The bytes that are sure to be there after a power cut, under whatever name."""
        return bytes(self._names[path].durable)

    def durable_files(self, directory: str) -> list[tuple[str, Inode]]:
        """The files of a directory that a power cut leaves, with their names in it, sorted."""
        prefix = f"{directory}/"
        return sorted(
            ((path[len(prefix) :], inode) for path, inode in self._durable_names.items() if _parent(path) == directory),
            key=lambda file: file[0],
        )

    def paths(self) -> list[str]:
        """All files, sorted."""
        return sorted(path for path, inode in self._names.items() if not inode.is_directory)

    def put(self, path: str, data: bytes) -> None:
        """Make a durable file out of nothing, with its directories: how a test lays out a disk."""
        parts = path.split("/")
        for end in range(2 if path.startswith("/") else 1, len(parts)):
            parent = "/".join(parts[:end])
            if parent not in self._names:
                self._names[parent] = self._durable_names[parent] = Inode(is_directory=True)
        inode = Inode(cached=bytearray(data), durable=bytearray(data))
        self._names[path] = self._durable_names[path] = inode
        self._note_changed_names()

    def wipe(self) -> None:
        """A new, empty disk."""
        self.kill()
        self._note_changed_names()
        self._names.clear()
        self._durable_names.clear()
        self._pending_names.clear()

    # --- inside --------------------------------------------------------------------------------------

    def _note_changed_names(self) -> None:
        self.durable_changes += 1
        self.durable_name_changes += 1

    def _require_directory(self, path: str) -> None:
        if not path:
            return
        inode = self._names.get(path)
        if inode is None or not inode.is_directory:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    def _change_names(self, path: str, gone: str | None, come: tuple[str, Inode] | None) -> None:
        change = (gone, come)
        _apply_names(self._names, change)
        self._pending_names.setdefault(_parent(path), []).append(change)

    def _fail_if_asked(self, path: str) -> None:
        if path in self._failing_syncs:
            self._failing_syncs.discard(path)
            raise OSError(errno.EIO, "sync failed", path)

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        return sum(len(inode.cached) for inode in self._names.values())

    def write(self, path: str, inode: Inode, data: bytes, position: int) -> None:
        growth = position + len(data) - len(inode.cached)
        if self.capacity is not None and growth > 0 and self.used + growth > self.capacity:
            fits = max(len(data) - (self.used + growth - self.capacity), 0)
            apply(inode.cached, (position, data[:fits]))
            inode.pending.append((position, data[:fits]))
            raise OSError(errno.ENOSPC, "no space left on device", path)
        apply(inode.cached, (position, data))
        inode.pending.append((position, data))

    def truncate(self, inode: Inode, size: int) -> None:
        apply(inode.cached, (size, None))
        inode.pending.append((size, None))

    def sync(self, path: str, inode: Inode) -> None:
        pending, inode.pending = inode.pending, []
        if path in self._failing_syncs:
            pending = pending[: self._rng.randint(0, len(pending))]
        self.durable_changes += 1
        for change in pending:
            inode.persist(change)
        self._fail_if_asked(path)
        if not any(named is inode for named in self._names.values()):
            raise removed(path)


class MemoryFile:
    """A handle. It may be read after its name is gone."""

    def __init__(self, disk: MemoryDisk, path: str, inode: Inode, *, is_writable: bool) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._is_writable = is_writable
        self._generation = disk.generation

    def pread(self, size: int, position: int) -> bytes:
        self._enter("pread")
        return bytes(self._inode.cached[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> None:
        self._enter("pwrite", writes=True)
        self._disk.write(self._path, self._inode, bytes(data), position)

    def sync(self) -> None:
        self._enter("sync")
        self._disk.sync(self._path, self._inode)

    def truncate(self, size: int) -> None:
        self._enter("truncate", writes=True)
        self._disk.truncate(self._inode, size)

    def size(self) -> int:
        self._enter("size")
        return len(self._inode.cached)

    def close(self) -> None:
        # Allowed after a crash: the kernel has closed it already.
        if self._generation == self._disk.generation:
            self._disk.open_handles.remove(self._path)
        self._generation = -1

    def _enter(self, operation: str, *, writes: bool = False) -> None:
        if self._generation != self._disk.generation:
            raise StaleHandle(f"{operation} of {self._path} with a handle that is closed or of a process that died")
        self._disk.on_call(operation, self._path)
        if writes and not self._is_writable:
            raise OSError(errno.EBADF, "opened for reading", self._path)


class MemoryLock:
    """See ``Disk.lock``."""

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _apply_names(names: dict[str, Inode], change: _NameChange) -> None:
    gone, come = change
    if gone is not None:
        names.pop(gone, None)
    if come is not None:
        names[come[0]] = come[1]
