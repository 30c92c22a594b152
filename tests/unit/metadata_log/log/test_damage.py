"""Files that somebody copied, and disks that refuse or lie: found when the log is opened, or at the first write."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.metadata_log.directory.directory import MetadataDirectory, format_directory
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.disk import OpenMode, RealDisk, RealFile
from quorate.metadata_log.errors import CorruptBatch
from quorate.metadata_log.log.segment_log import DamagedLog, MetadataLog
from quorate.metadata_log.segments.segment_files import segment_name
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, ModelledLog, flush, make_batch
from tests.unit.metadata_log.directory.test_directory import PLAN


def closed(count: int = 12) -> ModelledLog:
    """Several segments of one-record batches of epoch 1, all durable; the process has ended."""
    modelled = ModelledLog(0, log_config(segment_bytes=300))
    for _ in range(count):
        modelled.append(epoch=1)
    modelled.flush()
    modelled.log.close()
    modelled.disk.kill()
    return modelled


def contents(modelled: ModelledLog) -> dict[str, bytes]:
    return {path: modelled.disk.content(path) for path in modelled.disk.paths()}


def test_copied_segment_of_another_base_offset_is_damage_wherever_it_is_put() -> None:
    """Inside the log, and behind its end: it says other offsets than its name, and nothing is cut or changed for it."""
    whole = closed()
    bases = [base for base, _ in whole.log.segments]
    for base in bases:
        for name in {1, 2, *(other + 1 for other in bases), 11, 12, 13, 40} - set(bases):
            modelled = closed()
            modelled.disk.put(f"{DIRECTORY}/{segment_name(name)}", modelled.disk.content(modelled_path(base)))
            before = contents(modelled)
            log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
            assert log.damage is not None, (base, name)
            assert contents(modelled) == before
            with pytest.raises(DamagedLog):
                log.append(make_batch(log.end_offset, 1).data)


def modelled_path(base: int) -> str:
    return f"{DIRECTORY}/{segment_name(base)}"


def test_copied_segment_under_a_name_of_no_segment_is_not_looked_at() -> None:
    modelled = closed()
    for name in ("00000000000000000000.log.copy", "00000000000000000000 (1).log", "old.log"):
        modelled.disk.put(f"{DIRECTORY}/{name}", modelled.disk.content(modelled_path(0)))
    log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
    assert (log.damage, log.end_offset) == (None, 12)


def test_copied_segment_is_named_by_tools(tmp_path: Path) -> None:
    (tmp_path / segment_name(0)).write_bytes(b"".join(make_batch(offset, 1).data for offset in range(3)))
    (tmp_path / segment_name(3)).write_bytes((tmp_path / segment_name(0)).read_bytes())
    first, copied = find_files(tmp_path)
    assert len(list(iter_batches(first))) == 3
    with pytest.raises(CorruptBatch, match="base offset 0 where 3 is due"):
        list(iter_batches(copied))


def test_disk_that_lied_about_its_syncs_is_damage_by_the_mark() -> None:
    """After the power cut the log is as it was long before; the mark, in a file of its own, was written later."""
    early = closed(10)
    modelled = closed(12)
    last = max(base for base, _ in modelled.log.segments)
    modelled.disk.put(modelled_path(last), early.disk.content(modelled_path(last)))
    log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
    assert log.damage is not None
    assert "promised up to 12" in log.damage.reason


# --- a disk that is read only, under the real file shell ---------------------------------------------


@pytest.fixture
def node(tmp_path: Path) -> Path:
    format_directory(RealDisk(), str(tmp_path / "node"), PLAN)
    return tmp_path / "node"


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel says on a file system that it has remounted: nothing is written, made, renamed or removed."""

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    open_file = RealDisk.open_file

    def open_to_read(self: RealDisk, path: str, mode: OpenMode) -> RealFile:
        if mode is not OpenMode.READ:
            refuse()
        return open_file(self, path, mode)

    monkeypatch.setattr(RealDisk, "open_file", open_to_read)
    monkeypatch.setattr(RealFile, "pwrite", refuse)
    monkeypatch.setattr(RealFile, "truncate", refuse)
    for name in ("rename", "unlink", "make_directory"):
        monkeypatch.setattr(RealDisk, name, refuse)


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    return ((str(path), path.read_bytes()) for path in sorted(directory.rglob("*")) if path.is_file())


def test_disk_that_turns_read_only_fails_the_flush_and_keeps_what_was_promised(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = MetadataDirectory.open(RealDisk(), str(node))
    log = MetadataLog.open(RealDisk(), directory.log_path, log_config())
    log.append(make_batch(0, 1).data)
    flush(log)
    with monkeypatch.context() as context:
        read_only(context)
        log.append(make_batch(1, 1).data)
        with pytest.raises(OSError, match="Read-only file system"):
            flush(log)
        assert log.durable_end == 1
    log.close()
    again = MetadataLog.open(RealDisk(), directory.log_path, log_config())
    assert (again.damage, again.end_offset) == (None, 1)
    again.close()
    directory.close()


def test_log_on_a_disk_that_is_read_only_is_not_opened_and_stays_as_it_is(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetadataLog.open(RealDisk(), str(node / "__cluster_metadata-0"), log_config())
    log.append(make_batch(0, 1).data)
    flush(log)
    log.close()
    before = list(files(node))
    with monkeypatch.context() as context:
        read_only(context)
        with pytest.raises(OSError, match="Read-only file system"):
            MetadataLog.open(RealDisk(), str(node / "__cluster_metadata-0"), log_config())
    assert list(files(node)) == before
