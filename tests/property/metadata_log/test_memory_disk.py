"""The disk in memory against the real one: without faults they do the same."""

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.metadata_log.disk import Disk, OpenMode, RealDisk
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk

NAMES = st.sampled_from(["a", "b", "c"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("write"), NAMES, st.integers(0, 60), st.binary(max_size=40)),
        st.tuples(st.just("truncate"), NAMES, st.integers(0, 60)),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("unlink"), NAMES),
        st.tuples(st.just("sync"), NAMES),
        st.tuples(st.just("sync_directory")),
    ),
    max_size=30,
)


def perform(disk: Disk, root: str, operation: tuple[Any, ...]) -> object:
    """What the operation gives, or the kind of its failure."""
    try:
        return _perform(disk, root, operation)
    except OSError as error:
        return type(error)


def _perform(disk: Disk, root: str, operation: tuple[Any, ...]) -> object:
    kind = operation[0]
    if kind == "sync_directory":
        disk.sync_directory(root)
        return disk.list_directory(root)
    path = f"{root}/{operation[1]}"
    if kind == "rename":
        disk.rename(path, f"{root}/{operation[2]}")
        return disk.list_directory(root)
    if kind == "unlink":
        disk.unlink(path)
        return disk.list_directory(root)
    file = disk.open_file(path, OpenMode.CREATE if kind == "create" else OpenMode.WRITE)
    try:
        if kind == "write":
            file.pwrite(operation[3], operation[2])
        elif kind == "truncate":
            file.truncate(operation[2])
        elif kind == "sync":
            file.sync()
        return (file.size(), file.pread(100, 0), file.pread(3, 5))
    finally:
        file.close()


@given(operations=OPERATIONS)
def test_memory_disk_does_what_a_real_disk_does(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        memory = MemoryDisk(Random(0))
        memory.make_directory("/root")
        for operation in operations:
            assert perform(memory, "/root", operation) == perform(RealDisk(), root, operation), operation
        assert memory.list_directory("/root") == RealDisk().list_directory(root)
        for name in memory.list_directory("/root"):
            assert memory.content(f"/root/{name}") == (Path(root) / name).read_bytes()


@given(operations=OPERATIONS, seed=st.integers(0, 1_000), policy=st.sampled_from(CrashPolicy))
def test_power_cut_keeps_what_was_synced(operations: list[tuple[Any, ...]], seed: int, policy: CrashPolicy) -> None:
    disk = MemoryDisk(Random(seed))
    disk.make_directory("/root")
    disk.sync_directory("/")
    for operation in operations:
        perform(disk, "/root", operation)
    for name in disk.list_directory("/root"):
        perform(disk, "/root", ("sync", name))
    disk.sync_directory("/root")
    before = {path: disk.content(path) for path in disk.paths()}
    disk.power_cut(policy)
    assert {path: disk.content(path) for path in disk.paths()} == before
    disk.power_cut(CrashPolicy.NOTHING)
    assert {path: disk.content(path) for path in disk.paths()} == before
