"""Log and checkpoint files read from outside: which files, in which order, and where damage is."""

import re
import struct
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.directory.reader import LogFile, classify, find_files, iter_batches
from quorate.metadata_log.errors import CorruptBatch, StorageError
from quorate.metadata_log.records.records import NoOpRecord

TIME = 1_700_000_000_000


def placed(base_offset: int, epoch: int = 1, count: int = 2) -> bytes:
    return place_batch(data_batch([(NoOpRecord(), 0)] * count, TIME), base_offset, epoch)


def segment(directory: Path, base_offset: int, *batches: bytes) -> LogFile:
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return classify(path)


def damage_in(file: LogFile) -> CorruptBatch:
    with pytest.raises(CorruptBatch) as damage:
        list(iter_batches(file))
    assert damage.value.path == str(file.path)
    assert str(file.path) in str(damage.value)
    return damage.value


def test_batches_come_with_position_and_header(tmp_path: Path) -> None:
    first, second = placed(40), placed(42, epoch=2, count=3)
    batches = list(iter_batches(segment(tmp_path, 40, first, second)))

    assert [(batch.position, batch.header.base_offset, batch.header.end_offset) for batch in batches] == [
        (0, 40, 42),
        (len(first), 42, 45),
    ]
    assert [batch.data for batch in batches] == [first, second]


def test_empty_segment_has_no_batches(tmp_path: Path) -> None:
    """A log that has just rolled has one."""
    assert list(iter_batches(segment(tmp_path, 40))) == []


def test_files_are_named_by_what_they_hold(tmp_path: Path) -> None:
    names = {
        "00000000000000000042.log": (False, 42, None),
        "00000000000000000042-0000000003.checkpoint": (True, 42, 3),
        "bootstrap.checkpoint": (True, None, None),
        "copy.log": (False, None, None),
        "anything": (False, None, None),
    }
    for name, (is_checkpoint, offset, epoch) in names.items():
        assert classify(tmp_path / name) == LogFile(tmp_path / name, is_checkpoint, offset, epoch)


def test_directory_gives_segments_then_checkpoints_in_order(tmp_path: Path) -> None:
    inner = tmp_path / "__cluster_metadata-0"
    inner.mkdir()
    names = [
        "00000000000000000000.log",
        "00000000000000000100.log",
        "00000000000000001000.log",
        "00000000000000000050-0000000001.checkpoint",
        "00000000000000000050-0000000002.checkpoint",
        "00000000000000000900-0000000001.checkpoint",
    ]
    for name in [
        *reversed(names),
        "quorum-state",
        "00000000000000000000.index",
        "00000000000000000050-0000000001.checkpoint.part",
    ]:
        (inner / name).touch()

    assert [file.path.name for file in find_files(tmp_path)] == names
    assert [file.path.name for file in find_files(inner)] == names
    assert find_files(inner / names[3]) == [LogFile(inner / names[3], True, 50, 1)]


def test_path_without_files_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="holds no segment"):
        find_files(tmp_path)
    with pytest.raises(StorageError, match="no such file or directory"):
        find_files(tmp_path / "missing")


def test_of_a_directory_of_backups_the_newest_is_named(tmp_path: Path) -> None:
    names = [f"quorate-202601{day}T030000Z.checkpoint" for day in ("31", "05")]
    for name in names:
        (tmp_path / name).touch()

    with pytest.raises(StorageError, match=f"a file is named by itself: {re.escape(str(tmp_path / names[0]))}$"):
        find_files(tmp_path)


@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero"])
def test_what_is_there_and_no_file_with_bytes_of_its_own_is_told_so(name: str) -> None:
    with pytest.raises(StorageError, match=f"^{name}: neither a regular file nor a directory$"):
        find_files(Path(name))


def test_file_that_vanishes_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        list(iter_batches(classify(tmp_path / "00000000000000000000.log")))


def test_gap_between_batches_is_damage(tmp_path: Path) -> None:
    first = placed(0)
    damage = damage_in(segment(tmp_path, 0, first, placed(3)))
    assert (damage.position, damage.offset, damage.reason) == (len(first), 2, "base offset 3 where 2 is due")


def test_segment_that_begins_elsewhere_than_its_name_is_damage(tmp_path: Path) -> None:
    damage = damage_in(segment(tmp_path, 10, placed(0)))
    assert (damage.position, damage.offset) == (0, 10)


def test_file_of_unknown_start_may_begin_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "copy.log"
    path.write_bytes(placed(10) + placed(12))
    assert len(list(iter_batches(classify(path)))) == 2


def test_epoch_that_falls_is_damage(tmp_path: Path) -> None:
    first = placed(0, epoch=5)
    damage = damage_in(segment(tmp_path, 0, first, placed(2, epoch=4)))
    assert (damage.position, damage.reason) == (len(first), "epoch 4 after epoch 5")


def test_flipped_bit_is_damage_at_its_batch(tmp_path: Path) -> None:
    first, second = placed(0), bytearray(placed(2))
    second[-3] ^= 1
    damage = damage_in(segment(tmp_path, 0, first, bytes(second)))
    assert (damage.position, damage.offset, damage.reason) == (len(first), 2, "the CRC does not match")


@pytest.mark.parametrize("kept", [1, 60, 61, 62, 70])
def test_cut_last_batch_is_damage_after_what_is_whole(tmp_path: Path, kept: int) -> None:
    first = placed(0)
    file = segment(tmp_path, 0, first, placed(2)[:kept])
    batches = iter_batches(file)

    assert next(batches).data == first
    with pytest.raises(CorruptBatch) as damage:
        next(batches)
    assert (damage.value.position, damage.value.offset) == (len(first), 2)


def test_length_out_of_all_bounds_is_damage_without_reading_it(tmp_path: Path) -> None:
    changed = bytearray(placed(0))
    changed[8:12] = struct.pack(">i", 2**31 - 1)
    assert "batch size 2147483659 is not within" in damage_in(segment(tmp_path, 0, bytes(changed))).reason


def test_file_of_another_kind_is_damage_at_its_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Not a log, but longer than the sixty-one bytes of a batch header.\n")
    damage = damage_in(classify(path))
    assert (damage.position, damage.offset) == (0, None)
    assert "magic" in damage.reason
