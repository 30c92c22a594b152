"""A broken or half-written checkpoint is never used: whatever is done to its bytes, the older one and the log are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from quorate.metadata_log.directory.reader import classify, iter_batches
from quorate.metadata_log.errors import StorageError
from quorate.snapshots.checkpoints.loading import batches_from_start, load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver, load_checkpoint
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from tests.unit.snapshots.checkpoints.test_loading import config, write_checkpoint, write_segment

#: Byte of a batch from which on its CRC covers it: the attributes.
_CRC_COVERS_FROM: Final = 21


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    """A log from offset 3 on, a checkpoint below, and the newest, which says what only it says: its use shows."""
    write_checkpoint(tmp_path, 3, "below")
    write_segment(tmp_path, 3, [config("log")], [config("log at its end")])
    return write_checkpoint(tmp_path, 5, "newest")


def told(path: Path, at: Moment | int | None = None) -> tuple[MetadataImage, list[PassedOver]]:
    found: list[PassedOver] = []
    return load_image(path, at, found.append), found


def setting(image: MetadataImage) -> str | None:
    return image.configs.topic_value("any", "name")


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def interesting_bits(path: Path) -> list[int]:
    """All bits that no CRC covers, and one of every other byte."""
    found: list[int] = []
    for batch in iter_batches(classify(path)):
        for byte in range(batch.position, batch.position + batch.header.size):
            is_covered = byte >= batch.position + _CRC_COVERS_FROM
            found += [8 * byte + byte % 8] if is_covered else range(8 * byte, 8 * byte + 8)
    return found


def test_checkpoint_with_any_bit_flipped_is_passed_over(newest: Path, tmp_path: Path) -> None:
    """Or means the same: nothing that a flip can do makes another state of it."""
    whole = newest.read_bytes()
    sound = digest_image(load_checkpoint(classify(newest))).value
    for bit in interesting_bits(newest):
        newest.write_bytes(whole)
        flip(newest, bit)
        image, passed = told(tmp_path)
        if passed:
            assert setting(image) == "log at its end"
            (one,) = passed
            assert (one.path, one.end_offset) == (str(newest), 5)
            assert one.position is not None
            assert one.position <= bit // 8, "where it is found is not behind where it is"
        else:
            assert digest_image(image).value == sound
            assert image.provenance.log_time_ms == 5


def test_checkpoint_cut_at_any_byte_is_passed_over(newest: Path, tmp_path: Path) -> None:
    """Also where a batch ends: half-written, it looks whole so far."""
    whole = newest.read_bytes()
    for size in range(len(whole)):
        newest.write_bytes(whole[:size])
        image, (one,) = told(tmp_path)
        assert setting(image) == "log at its end"
        assert one.position is not None
        assert one.position <= size


def test_checkpoint_that_goes_on_behind_its_footer_is_passed_over(newest: Path, tmp_path: Path) -> None:
    newest.write_bytes(newest.read_bytes() + b"\0" * 10)
    assert setting(told(tmp_path)[0]) == "log at its end"


def test_all_damaged_checkpoints_are_passed_over_until_one_is_whole(newest: Path, tmp_path: Path) -> None:
    for path in (newest, write_checkpoint(tmp_path, 4, "next")):
        path.write_bytes(path.read_bytes()[:-1])
    image, passed = told(tmp_path)
    assert setting(image) == "log at its end"
    assert [(one.end_offset, "cut short" in one.reason) for one in passed] == [(5, True), (4, True)]


def test_damaged_checkpoint_that_is_not_wanted_is_not_looked_at(newest: Path, tmp_path: Path) -> None:
    newest.write_bytes(b"")
    for moment in (Moment(offset=4), Moment(epoch=0)):
        if moment.offset is not None:
            image, passed = told(tmp_path, moment)
            assert (setting(image), passed) == ("log", [])
        else:
            with pytest.raises(ImageNotAvailable, match="earliest checkpoint is the state at 3"):
                load_image(tmp_path, moment)


def test_checkpoint_whose_time_cannot_be_read_is_passed_over(newest: Path, tmp_path: Path) -> None:
    """The older one is of time 5, the log of times 3 and 4."""
    newest.write_bytes(newest.read_bytes()[:20])
    image, (one,) = told(tmp_path, Moment(time_ms=10))
    assert (setting(image), one.end_offset, one.position) == ("log at its end", 5, 0)


def test_gap_behind_the_older_checkpoint_is_named(newest: Path, tmp_path: Path) -> None:
    (tmp_path / f"{3:020d}.log").unlink()
    write_segment(tmp_path, 4, [config("behind the gap")])
    assert setting(load_image(tmp_path)) == "newest"
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.raises(
        ImageNotAvailable,
        match=rf"records 3 to 3 are missing, before {4:020d}\.log; .*{newest.name}: passed over, .*at byte \d+: "
        "the batch is cut short",
    ):
        load_image(tmp_path)


def test_log_that_ends_before_the_damaged_checkpoint_is_no_newest_state(newest: Path, tmp_path: Path) -> None:
    """It was installed when the node had been away: nothing else holds what it covers."""
    write_checkpoint(tmp_path, 9, "installed").write_bytes(b"")
    with pytest.raises(ImageNotAvailable, match=r"records 5 to 8 are in no file that is whole.*state .* at offset 5; "):
        load_image(tmp_path)
    assert setting(load_image(tmp_path, 5)) == "newest"


def test_no_checkpoint_that_is_whole_and_none_older_is_said_in_one_sentence(newest: Path, tmp_path: Path) -> None:
    for path in (newest, tmp_path / newest.name.replace("5-", "3-")):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        ImageNotAvailable,
        match=r"log begins at offset 3, in the middle of history, and no checkpoint is left that is whole; .*passed",
    ):
        load_image(tmp_path)
    (tmp_path / f"{3:020d}.log").unlink()
    with pytest.raises(ImageNotAvailable, match=r"no checkpoint is left that is whole, and there is no log; .*passed"):
        load_image(tmp_path)


def test_log_from_offset_0_needs_no_checkpoint(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")], [config("b")])
    write_checkpoint(tmp_path, 1, "x").write_bytes(b"nothing of the kind")
    image, passed = told(tmp_path)
    assert (setting(image), len(passed)) == ("b", 1)


def test_checkpoint_that_is_named_itself_is_refused_when_it_is_damaged(newest: Path) -> None:
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.raises(StorageError, match="cut short"):
        load_image(newest)


def test_history_begins_with_the_oldest_whole_checkpoint(newest: Path, tmp_path: Path) -> None:
    (tmp_path / f"{3:020d}-{1:010d}.checkpoint").write_bytes(b"")
    found: list[PassedOver] = []
    start, batches = batches_from_start(tmp_path, found.append)
    assert (start.end_offset, list(batches), [one.end_offset for one in found]) == (5, [], [3])
    newest.unlink()
    with pytest.raises(ImageNotAvailable, match=r"no checkpoint is left that is whole; .*passed over"):
        batches_from_start(tmp_path)
