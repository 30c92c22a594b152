"""Images from files: what is reached, and what is refused, and how it says so."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import build_batch, data_batch, frame_record, parse_header, place_batch
from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.errors import CorruptBatch, CorruptCheckpoint, StorageError
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.whole_checkpoints import load_checkpoint
from quorate.snapshots.errors import ImageNotAvailable, ReplayError
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.table_editor import PARTITIONS_PER_TOPIC_MAX
from tests.pipeline_logs import newest
from tests.record_stream import versioned

LOG = "log/__cluster_metadata-0"


def value(path: Path, at: Moment | int | None = None) -> str | None:
    """What one config says at a moment."""
    return load_image(path, at).configs.topic_value("any", "name")


def record_count(batch: bytes) -> int:
    return parse_header(batch).record_count


def write_segment(
    directory: Path,
    base: int,
    *batches: list[object],
    epoch: int = 1,
    epochs: tuple[int, ...] = (),
    times: tuple[int, ...] = (),
) -> Path:
    """The time of a batch is its base offset, or one of ``times``. ``epochs``: of each batch, if not all are of one."""
    path = directory / f"{base:020d}.log"
    offset = base
    data = b""
    for place, (records, its_epoch) in enumerate(zip(batches, epochs or [epoch] * len(batches), strict=True)):
        items = [(record, 0) for record in records]
        time_ms = times[place] if times else offset
        data += place_batch(data_batch(items, time_ms), offset, its_epoch)  # type: ignore[arg-type]
        offset += len(records)
    path.write_bytes(data)
    return path


def write_checkpoint(directory: Path, end_offset: int, setting: str, time_ms: int = 5) -> Path:
    image = replay(EMPTY_IMAGE, [versioned(config(setting))], Provenance(end_offset - 1, 1, time_ms))
    path = directory / f"{end_offset:020d}-{1:010d}.checkpoint"
    path.write_bytes(b"".join(checkpoint_batches(image, 9)))
    return path


def config(setting: str) -> ConfigRecord:
    return ConfigRecord(4, "", "name", setting)


def test_image_at_every_offset_is_what_the_records_below_it_add_up_to(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a"), config("b"), config("c")], [config("d")])

    assert [value(tmp_path, offset) for offset in range(5)] == [None, "a", "b", "c", "d"]
    assert load_image(tmp_path, 2).provenance == Provenance(1, 1, 0)
    assert load_image(tmp_path, 4).provenance == Provenance(3, 1, 3)


def test_image_at_a_time_is_that_after_the_last_batch_that_is_not_later(tmp_path: Path) -> None:
    """Of a log in which times fall, as Kafka's may: what was written before a batch that counts counts too."""
    batches: list[list[object]] = [[config(setting)] for setting in "abcde"]
    segment = write_segment(tmp_path, 0, *batches, times=(10, 5000, 20, 30, 3000))

    found = {time: value(tmp_path, Moment(time_ms=time)) for time in (10, 19, 20, 29, 30, 4999, 5000)}

    assert found == {10: "a", 19: "a", 20: "c", 29: "c", 30: "d", 4999: "e", 5000: "e"}
    # A checkpoint on the way makes no difference.
    write_checkpoint(tmp_path, 3, "c", time_ms=20)
    assert {time: value(tmp_path, Moment(time_ms=time)) for time in found} == found
    # Damage behind a batch that is later is not looked at, elsewhere nobody can tell what would come.
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    assert value(tmp_path, Moment(time_ms=19)) == "a"
    with pytest.raises(StorageError):
        value(tmp_path, Moment(time_ms=30))


def test_image_at_a_time_is_that_before_the_first_later_batch(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a"), config("b")], [config("c")], [config("d")])

    found = {time: value(tmp_path, Moment(time_ms=time)) for time in (0, 1, 2, 3, 10**12)}

    assert found == {0: "b", 1: "b", 2: "c", 3: "d", 10**12: "d"}


def test_time_that_is_yet_to_come_is_that_of_no_state(tmp_path: Path) -> None:
    """Unless the log was written by a clock that is ahead of this one."""
    to_come = Moment(time_ms=10**14)
    file = write_checkpoint(tmp_path, 6, "kept", time_ms=5)
    segment = write_segment(tmp_path, 6, [config("a")], times=(1_000,))

    for path in (tmp_path, segment):
        with pytest.raises(
            ImageNotAvailable,
            match=r"the log ends at offset 7, time 1970-01-01T00:00:01\S*, before 5138-11-16\S*, which is yet to come",
        ):
            load_image(path, to_come)
    with pytest.raises(ImageNotAvailable, match="the state at one offset, 6, not at 5138-11-16"):
        load_image(file, to_come)
    segment.unlink()
    write_segment(tmp_path, 6, [config("b")], times=(10**14,))
    assert value(tmp_path, to_come) == "b"


def test_image_at_an_epoch_is_that_at_its_end(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")], [config("b")], [config("c")], [config("d")], epochs=(1, 1, 4, 6))

    found = {epoch: value(tmp_path, Moment(epoch=epoch)) for epoch in range(1, 7)}

    assert found == {1: "b", 2: "b", 3: "b", 4: "c", 5: "c", 6: "d"}
    with pytest.raises(ImageNotAvailable, match="the log ends in epoch 6, before epoch 7"):
        load_image(tmp_path, Moment(epoch=7))


def test_time_or_epoch_from_before_the_log_is_that_of_no_state(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")], [config("b")], epochs=(2, 3), times=(1_000, 2_000))

    with pytest.raises(
        ImageNotAvailable, match=r"the log begins at 1970-01-01T00:00:01\S*, after 1970-01-01T00:00:00\.9"
    ):
        load_image(tmp_path, Moment(time_ms=999))
    with pytest.raises(ImageNotAvailable, match="the log begins in epoch 2, after epoch 1"):
        load_image(tmp_path, Moment(epoch=1))
    assert value(tmp_path, 0) is None, "an offset says what is meant: no record at all"


def test_moment_that_only_a_checkpoint_reaches_is_loaded_from_it(tmp_path: Path) -> None:
    """The log begins where the checkpoint ends, whose last batch is of time 5 and epoch 1."""
    write_checkpoint(tmp_path, 6, "kept")
    write_segment(tmp_path, 6, [config("a")], [config("b")], epochs=(1, 2))

    for moment, expected in (
        (Moment(time_ms=5), "kept"),
        (Moment(time_ms=6), "a"),
        (Moment(epoch=1), "a"),
        (Moment(epoch=2), "b"),
    ):
        assert value(tmp_path, moment) == expected, moment
    for moment in (Moment(time_ms=4), Moment(epoch=0), Moment(offset=5)):
        with pytest.raises(
            ImageNotAvailable, match=r"middle of history, after .*earliest checkpoint is the state at 6"
        ):
            load_image(tmp_path, moment)


def test_moment_of_a_checkpoint_file_is_what_it_covers(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, 6, "kept")

    for moment in (Moment(offset=6), Moment(time_ms=5), Moment(epoch=1)):
        assert value(checkpoint, moment) == "kept"
    for moment in (Moment(offset=7), Moment(time_ms=4), Moment(epoch=2), Moment(epoch=0)):
        with pytest.raises(ImageNotAvailable, match="holds the state at one offset, 6"):
            load_image(checkpoint, moment)


def test_image_at_offset_inside_transaction_is_that_before_it(tmp_path: Path) -> None:
    write_segment(
        tmp_path, 0, [config("a"), BeginTransactionRecord(), config("b")], [config("c"), EndTransactionRecord()]
    )

    assert [value(tmp_path, offset) for offset in range(6)] == [None, "a", "a", "a", "a", "c"]


def test_image_starts_from_newest_checkpoint_at_or_before_the_offset(tmp_path: Path) -> None:
    """The checkpoints say something else than the log, so that it shows which was taken."""
    write_segment(tmp_path, 0, [config("a")], [config("b")], [ConfigRecord(4, "", "other", "x")])
    write_checkpoint(tmp_path, 1, "from 1")
    write_checkpoint(tmp_path, 2, "from 2")

    assert [value(tmp_path, offset) for offset in (0, 1, 2, 3)] == [None, "from 1", "from 2", "from 2"]
    assert value(tmp_path) == "from 2"


def test_log_that_begins_in_the_middle_reaches_from_its_checkpoint_on(tmp_path: Path) -> None:
    write_segment(tmp_path, 5, [config("below"), config("b")], [config("c")])
    checkpoint = write_checkpoint(tmp_path, 7, "kept")

    assert value(tmp_path, 7) == "kept"
    assert value(tmp_path) == "c"
    with pytest.raises(ImageNotAvailable, match=r"begins at offset 5.*earliest checkpoint is the state at 7"):
        load_image(tmp_path, 6)
    checkpoint.unlink()
    with pytest.raises(ImageNotAvailable, match=r"begins at offset 5.*no checkpoint"):
        load_image(tmp_path)


def test_offset_beyond_the_log_is_refused(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")])

    with pytest.raises(ImageNotAvailable, match="ends at offset 1, before 2"):
        load_image(tmp_path, 2)


def test_missing_records_between_checkpoint_and_segment_are_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 3, "a")
    write_segment(tmp_path, 5, [config("b")])

    with pytest.raises(ImageNotAvailable, match="records 3 to 4 are missing"):
        load_image(tmp_path)


def test_segment_stands_for_the_state_at_its_end(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")])
    second = write_segment(tmp_path, 1, [config("b")])
    write_segment(tmp_path, 2, [config("c")])
    write_checkpoint(tmp_path, 3, "later")

    assert value(second) == "b"
    assert value(second, 1) == "a"


def test_segment_alone_from_offset_0_needs_nothing_beside_it(tmp_path: Path) -> None:
    renamed = tmp_path / "copy-of-a-segment"
    write_segment(tmp_path, 0, [config("a")]).rename(renamed)

    assert value(renamed) == "a"


def test_checkpoint_file_is_the_state_at_its_own_offset_only(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, 7, "a")

    assert value(checkpoint, 7) == "a"
    with pytest.raises(ImageNotAvailable, match="the state at one offset, 7, not at offset 6"):
        load_image(checkpoint, 6)


def test_record_that_breaks_replay_is_named_by_offset(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, [config("a")], [config("b"), RemoveTopicRecord(b"x" * 16)])

    with pytest.raises(ReplayError, match="offset 2: RemoveTopicRecord") as raised:
        load_image(tmp_path)
    assert raised.value.offset == 2


def test_flipped_byte_is_reported_with_file_and_position(tmp_path: Path) -> None:
    path = write_segment(tmp_path, 0, [config("a")], [config("b")])
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptBatch) as raised:
        load_image(tmp_path)
    assert (raised.value.path, raised.value.offset) == (str(path), 1)
    assert value(tmp_path, 1) == "a"  # what lies before the damage can still be seen


def test_record_of_the_log_that_is_not_in_the_format_is_reported_with_file_and_position(tmp_path: Path) -> None:
    """Its batch is whole: its CRC is of what was written."""
    path = write_segment(tmp_path, 0, [config("a")], [config("b")], [config("c")])
    first, _, third = (place_batch(data_batch([(config(name), 0)], at), at, 1) for at, name in enumerate("abc"))
    unknown = place_batch(build_batch(frame_record(0, None, b"\1\x7f\0"), 1, 1), 1, 1)
    path.write_bytes(first + unknown + third)

    for is_behind_a_checkpoint in (False, True):
        if is_behind_a_checkpoint:
            write_checkpoint(tmp_path, 1, "a")
        with pytest.raises(CorruptBatch, match="127") as raised:
            load_image(tmp_path)
        assert (raised.value.path, raised.value.position, raised.value.offset) == (str(path), len(first), 1)


def test_of_several_faults_of_the_log_the_first_is_told(tmp_path: Path) -> None:
    """Batches are replayed together; what comes behind them is looked at before."""
    bad = RemoveTopicRecord(b"x" * 16)
    path = write_segment(tmp_path, 0, [config("a")], [bad], [config("b")])
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    with pytest.raises(ReplayError, match="offset 1: RemoveTopicRecord"):
        load_image(tmp_path)
    write_segment(tmp_path, 0, [config("a")], [bad])
    write_segment(tmp_path, 9, [config("b")])
    with pytest.raises(ReplayError, match="offset 1: RemoveTopicRecord"):
        load_image(tmp_path)


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_record_of_a_checkpoint_that_cannot_be_replayed_is_told_with_its_batch(tmp_path: Path, damaged: int) -> None:
    path = write_checkpoint(tmp_path, 7, "a")
    head, _, foot = checkpoint_batches(load_checkpoint(find_files(path)[0]), 9)
    bad = RemoveTopicRecord(b"none".ljust(16))
    batches = [head, *(data_batch([(config("a") if at != damaged else bad, 0)], 9) for at in (1, 2, 3)), foot]
    placed = [place_batch(batch, at, 1) for at, batch in enumerate(batches)]
    path.write_bytes(b"".join(placed))
    with pytest.raises(CorruptCheckpoint, match="cannot be replayed: RemoveTopicRecord") as raised:
        load_image(path)
    assert raised.value.position == sum(map(len, placed[:damaged]))


def test_partition_number_that_no_topic_may_have_is_told_with_its_batch(tmp_path: Path) -> None:
    """Rows are reserved for the batch ahead, too: what is wrong there is found when its turn comes."""
    path = write_checkpoint(tmp_path, 7, "a")
    head, _, foot = checkpoint_batches(load_checkpoint(find_files(path)[0]), 9)
    topic, numbers = b"t".ljust(16), ([*range(64)], [*range(64, 127), PARTITIONS_PER_TOPIC_MAX])
    records: list[list[TopicRecord | PartitionRecord]] = [[TopicRecord("t", topic)]]
    records += [[PartitionRecord(n, topic, (1,), (1,), leader=1) for n in of_one] for of_one in numbers]
    batches = [head, *(data_batch([(record, newest(record)) for record in of_one], 9) for of_one in records), foot]
    bases = accumulate(map(record_count, batches), initial=0)
    placed = [place_batch(batch, base, 1) for batch, base in zip(batches, bases, strict=False)]
    path.write_bytes(b"".join(placed))
    with pytest.raises(CorruptCheckpoint, match="the last number is") as raised:
        load_image(path)
    assert raised.value.position == sum(map(len, placed[:3]))


def test_checkpoint_without_its_footer_is_refused(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, 7, "a")
    batches = list(checkpoint_batches(load_checkpoint(find_files(path)[0]), 9))
    path.write_bytes(b"".join(batches[:-1]))

    with pytest.raises(CorruptCheckpoint, match="no SnapshotFooter"):
        load_image(path)
    path.write_bytes(b"".join(place_batch(batch, at, 1) for at, batch in enumerate(batches[1:])))
    with pytest.raises(CorruptCheckpoint, match="no SnapshotHeader"):
        load_image(path)


def test_path_with_nothing_to_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="holds no segment"):
        load_image(tmp_path)
    with pytest.raises(StorageError, match="no such file"):
        load_image(tmp_path / "absent")


def test_bootstrap_checkpoint_of_kafka_is_an_image_without_an_offset(kafka_data: Path) -> None:
    image = load_image(kafka_data / "static/m1/log/bootstrap.checkpoint")

    assert image.features.metadata_version == 21
    assert image.provenance.end_offset == 0
