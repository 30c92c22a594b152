"""Directories that Kafka left open as they lie."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from quorate.metadata_log.directory.quorum_state import QuorumStateStore
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, contents, flush, make_batch


def captured(kafka_data: Path) -> Iterator[tuple[Path, dict[str, int]]]:
    for expected in sorted(kafka_data.glob("*/m*/expected.json")):
        facts = json.loads(expected.read_text())["log"]
        for copy in ("log", "log-follower"):
            directory = expected.parent / copy / "__cluster_metadata-0"
            if directory.exists():
                yield directory, facts


def in_memory(directory: Path) -> MemoryDisk:
    disk = MemoryDisk(Random(0))
    for file in directory.iterdir():
        disk.put(f"{DIRECTORY}/{file.name}", file.read_bytes())
    return disk


def test_directories_of_kafka_open_as_they_lie(kafka_data: Path) -> None:
    seen = 0
    for directory, facts in captured(kafka_data):
        disk = in_memory(directory)
        log = MetadataLog.open(disk, DIRECTORY, log_config())
        assert not log.is_damaged, log.damage
        assert log.torn_tail is None
        assert log.start_offset == facts["log_start_offset"], directory
        assert log.end_offset == log.durable_end == facts["end_offset"]
        assert log.segments[0][0] == facts["first_offset_in_files"]
        # Written anew from the batches, it says what Kafka's own said.
        lines = (directory / "leader-epoch-checkpoint").read_text()
        assert disk.content(f"{DIRECTORY}/leader-epoch-checkpoint").decode() == lines
        assert contents(log)[0].base_offset == log.start_offset
        assert QuorumStateStore(disk, DIRECTORY).load() is not None
        seen += 1
    assert seen == 8


def test_directory_of_kafka_that_begins_in_mid_history_starts_at_its_checkpoint(kafka_data: Path) -> None:
    disk = in_memory(kafka_data / "static/m4/log/__cluster_metadata-0")
    log = MetadataLog.open(disk, DIRECTORY, log_config())
    assert (log.start_offset, log.start_epoch, log.end_offset, log.last_epoch) == (15719, 1, 21247, 3)
    assert log.segments[0][0] == 12538
    assert [info.id for info in log.checkpoints_at_open.usable] == [(15719, 1)]
    log.truncate_to(15719)
    assert log.segments[-1][0] == 12538
    assert log.end_offset == 15719


def test_directory_of_kafka_goes_on_with_our_batches(kafka_data: Path) -> None:
    disk = in_memory(kafka_data / "dynamic-small/m1/log/__cluster_metadata-0")
    log = MetadataLog.open(disk, DIRECTORY, log_config())
    log.append(make_batch(77, 3, 2).data)
    flush(log)
    disk.power_cut(CrashPolicy.NOTHING)
    again = MetadataLog.open(disk, DIRECTORY, log_config())
    assert (again.end_offset, again.last_epoch, len(again.segments)) == (79, 3, 1)
