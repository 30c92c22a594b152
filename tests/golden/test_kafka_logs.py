"""Logs and checkpoints that Apache Kafka wrote, against what Kafka's own tool reads in them: ``records.jsonl.gz``."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from quorate.metadata_log.batches.batch import (
    BatchHeader,
    control_batch,
    data_batch,
    iter_records,
    parse_header,
    place_batch,
)
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.directory.reader import FileBatch, classify, iter_batches
from quorate.metadata_log.records.json_form import json_type, record_data, record_from_data
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord, VersionedRecord
from tests.conftest import DATA_DIRECTORY
from tests.strategies import records_of

CAPTURES = ("static", "dynamic-small")
Row = dict[str, Any]


def captured_files() -> Iterator[str]:
    """Every captured segment and checkpoint, as ``capture/path``."""
    for capture in CAPTURES:
        listed = json.loads((DATA_DIRECTORY / "kafka" / capture / "files.json").read_text(encoding="utf-8"))
        yield from (f"{capture}/{name}" for name in listed)


FILES = list(captured_files())


@cache
def kafka_rows(capture: str) -> dict[str, list[Row]]:
    """What Kafka's dump tool said, by file."""
    rows: dict[str, list[Row]] = {}
    with gzip.open(DATA_DIRECTORY / "kafka" / capture / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            rows.setdefault(row["file"], []).append(row)
    return rows


def facts_of(file: str) -> Row:
    capture, _, name = file.partition("/")
    listed: Row = json.loads((DATA_DIRECTORY / "kafka" / capture / "files.json").read_text(encoding="utf-8"))[name]
    return listed


def expected_rows(file: str) -> list[Row] | None:
    """Kafka's rows of this file; a file that begins another one's records has that many of them; None: not listed."""
    capture, _, name = file.partition("/")
    facts = facts_of(file)
    rows = kafka_rows(capture).get(facts.get("records_under", name))
    return None if rows is None else rows[: facts["records"]]


def batches_of(file: str) -> list[FileBatch]:
    return list(iter_batches(classify(DATA_DIRECTORY / "kafka" / file)))


def batch_row(header: BatchHeader, position: int) -> Row:
    return {
        "base": header.base_offset,
        "last": header.last_offset,
        "count": header.record_count,
        "epoch": header.epoch,
        "control": header.is_control,
        "position": position,
        "timestamp": header.timestamp,
        "size": header.size,
        "crc": header.crc,
    }


@pytest.mark.parametrize("file", FILES)
def test_records_of_captured_file_equal_what_kafka_reads(file: str) -> None:
    rows: list[Row] = [
        {
            "offset": logged.offset,
            "timestamp": logged.timestamp,
            "key_size": logged.key_size,
            "value_size": logged.value_size,
            "type": json_type(logged.record),
            "version": logged.version,
            "data": record_data(logged.record, logged.version),
            "batch": batch_row(batch.header, batch.position),
        }
        for batch in batches_of(file)
        for logged in iter_records(batch.data)
    ]
    facts = facts_of(file)
    expected = expected_rows(file)

    types = Counter(f"{row['type'].removesuffix('_RECORD')} v{row['version']}" for row in rows)
    assert dict(types) == facts["types"]
    assert [rows[0]["offset"], rows[-1]["offset"]] == [facts["first_offset"], facts["last_offset"]]
    if expected is not None:  # files of followers are only counted
        assert rows == [{name: value for name, value in row.items() if name != "file"} for row in expected]


@pytest.mark.parametrize("file", FILES)
def test_captured_file_written_again_has_the_same_bytes(file: str) -> None:
    """Every byte of Kafka's encoding is ours, too: order and choice of tags, lengths, keys, CRC."""
    for batch in batches_of(file):
        header = batch.header
        records = [(logged.record, logged.version) for logged in iter_records(batch.data)]
        build = control_batch if header.is_control else data_batch
        assert place_batch(build(records, header.timestamp), header.base_offset, header.epoch) == batch.data


@pytest.mark.parametrize("file", FILES)
def test_captured_file_reads_the_same_by_columns_and_by_rows(file: str) -> None:
    for batch in batches_of(file):
        rows = [VersionedRecord(logged.record, logged.version) for logged in iter_records(batch.data)]
        columns = [record for item in decode_batch(batch.data) for record in records_of(item)]
        assert sorted(map(repr, columns)) == sorted(map(repr, rows))
        assert of_partitions(columns) == of_partitions(rows)
        assert parse_header(batch.data).record_count == len(columns)


def of_partitions(records: list[VersionedRecord]) -> dict[tuple[bytes, int], list[VersionedRecord]]:
    """What happens to each partition, in order."""
    found: dict[tuple[bytes, int], list[VersionedRecord]] = {}
    for each in records:
        if isinstance(each.record, PartitionRecord | PartitionChangeRecord):
            found.setdefault((each.record.topic_id, each.record.partition_id), []).append(each)
    return found


@pytest.mark.parametrize("capture", CAPTURES)
def test_kafkas_json_gives_the_records_that_its_bytes_give(capture: str) -> None:
    """The other way through the JSON form, for every distinct record that Kafka printed."""
    seen: set[str] = set()
    for rows in kafka_rows(capture).values():
        for row in rows:
            key = json.dumps([row["type"], row["version"], row["data"]])
            if key in seen:
                continue
            seen.add(key)
            record, version = record_from_data(row["type"], row["version"], row["data"])
            assert record_data(record, version) == row["data"]
    assert len(seen) > 50
