"""Files that Quorate writes are valid for Kafka: its own dump tool reads them, record for record as we do."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from quorate.metadata_log.batches.batch import control_batch, data_batch, parse_header, place_batch
from quorate.metadata_log.batches.builder import build_batches
from quorate.metadata_log.batches.runs import PartitionChangeRun, PartitionRun, Run
from quorate.metadata_log.records.records import LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord
from quorate.metadata_log.records.schema import SCHEMAS, Field, StructSchema
from quorate.quorum.config import VoterAddress
from quorate.quorum.storage.leader_change import first_batch
from quorate.scripts.cli.logs.log import app
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import load_image
from tests.default_parts import quorum_config
from tests.integration.kafka_tools import DumpedFile, dump_with_kafka, kafka_jars

#: The first run fetches some 50 MB.
pytestmark = [pytest.mark.java, pytest.mark.timeout(1_000)]

TIME = 1_700_000_000_000
EPOCH = 3
SEED = 20_431
#: Records of a run. Together they pass the offset deltas where a varint grows, at 64 and at 8192.
RUN_ROWS = 1_500


@pytest.fixture(scope="module")
def jars() -> Path:
    """Kafka's jars, or a skip that says why not."""
    return kafka_jars()


# --- what is written ---------------------------------------------------------------------------------


def value_of(generator: random.Random, field: Field, version: int, size: int) -> Any:
    """Some value of a field; arrays, strings and bytes have ``size`` elements."""
    if field.is_array:
        return tuple(element_of(generator, field, version, min(size, 3)) for _ in range(size))
    return element_of(generator, field, version, size)


def element_of(generator: random.Random, field: Field, version: int, size: int) -> Any:
    if field.struct is not None:
        return object_of(generator, field.struct, version, size)
    bits = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}.get(field.element_type)
    if bits is not None:
        return generator.getrandbits(bits) - (1 << (bits - 1))
    match field.element_type:
        case "uint16":
            return generator.getrandbits(16)
        case "bool":
            return generator.random() < 0.5
        case "float64":
            return generator.uniform(-1e9, 1e9)
        case "string":
            return "".join(generator.choices('abcxyz.-_ü€😀"\\', k=size))
        case "bytes":
            return generator.randbytes(size)
        case "uuid":
            return generator.randbytes(16)
    raise AssertionError(field.element_type)


def object_of(generator: random.Random, schema: StructSchema, version: int, size: int) -> Any:
    fields = [field for field in schema.fields if version in field.versions]
    return schema.cls(**{field.name: value_of(generator, field, version, size) for field in fields})


def samples(generator: random.Random, *, control: bool) -> Iterator[tuple[Any, int]]:
    """Every record type in every version: at its defaults, with all fields set, with long arrays and strings."""
    for schema in SCHEMAS:
        if schema.is_control is control:
            for version in range(schema.versions.first, schema.versions.last + 1):
                yield schema.struct.cls(), version
                for size in (1, 2, 130):
                    yield object_of(generator, schema.struct, version, size), version


def mass_runs(generator: np.random.Generator) -> Iterator[Run]:
    """Long runs: partitions as they are created, changes as the loss of a broker makes them, one of every column."""

    def ids(size: int, low: int = 0) -> Any:
        return generator.integers(low, 9, (RUN_ROWS, size), dtype=np.int32)

    topics = generator.integers(0, 256, (RUN_ROWS, 16), dtype=np.uint8)
    numbers = np.arange(RUN_ROWS, dtype=np.int32)
    leader = generator.integers(-1, 9, RUN_ROWS, dtype=np.int32)
    directories = generator.integers(0, 256, (RUN_ROWS, 3, 16), dtype=np.uint8)
    state = np.ones(RUN_ROWS, np.int8)
    yield PartitionRun(2, topics, numbers, ids(3), ids(2), ids(0), ids(1), leader, numbers, numbers, directories)
    yield PartitionRun(
        2, topics, numbers, ids(3), ids(0), ids(0), ids(0), leader, numbers, numbers, directories, state, ids(1), ids(2)
    )
    yield PartitionRun(0, topics, numbers, ids(1), ids(1), ids(0), ids(0), leader, numbers, numbers)
    yield PartitionChangeRun(2, topics, numbers, isr=ids(2), leader=leader)
    yield PartitionChangeRun(0, topics, numbers, isr=ids(40))
    yield PartitionChangeRun(
        2, topics, numbers, ids(1), leader, ids(3), ids(0), ids(2), state, directories, ids(1), ids(1, low=-1)
    )


def write(path: Path, batches: Iterable[bytes]) -> Path:
    """The batches one after the other, placed in a log that begins at offset 0."""
    offset = 0
    with path.open("wb") as file:
        for batch in batches:
            file.write(place_batch(batch, offset, EPOCH))
            offset += parse_header(batch).record_count
    return path


# --- what is compared --------------------------------------------------------------------------------


def dump_ourselves(path: Path) -> list[dict[str, Any]]:
    """The file as `quorate log dump --json` prints it."""
    result = CliRunner().invoke(app, ["dump", "--json", "--show-secrets", str(path)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def assert_equal_dumps(path: Path, kafka: DumpedFile) -> None:
    ours = dump_ourselves(path)
    batches = {row["batch"]["position"]: {**row["batch"], "isvalid": True} for row in ours}
    assert kafka.batches == list(batches.values())
    assert len(kafka.records) == len(ours)
    for theirs, mine in zip(kafka.records, ours, strict=True):
        expected = {name: value for name, value in mine.items() if name not in ("file", "batch")}
        assert theirs == {**expected, "batch": mine["batch"]["position"]}


def test_kafka_reads_every_record_that_we_write_as_we_do(jars: Path, tmp_path: Path) -> None:
    """Every type and version, and mass records written as columns, in a segment and in a checkpoint."""
    generator = random.Random(SEED)
    control = [each for each in samples(generator, control=True) if can_stand_anywhere(*each)]
    singles = list(samples(generator, control=False))
    runs = list(mass_runs(np.random.default_rng(SEED)))
    segment = write(
        tmp_path / f"{0:020d}.log",
        [
            control_batch(control, TIME),
            *(data_batch([each], TIME + number) for number, each in enumerate(singles)),
            data_batch(singles, TIME + 1_000),
            *build_batches(runs, TIME + 2_000),
        ],
    )
    checkpoint = write(
        tmp_path / f"{77:020d}-{EPOCH:010d}.checkpoint",
        [
            control_batch([(SnapshotHeaderRecord(TIME), 0), *control], TIME),
            data_batch(singles, TIME),
            *build_batches([run.slice(0, 100) for run in runs], TIME),
            control_batch([(SnapshotFooterRecord(), 0)], TIME),
        ],
    )
    kafka = dump_with_kafka(jars, segment, checkpoint)

    for path in (segment, checkpoint):
        assert_equal_dumps(path, kafka[path])


def can_stand_anywhere(record: Any, version: int) -> bool:
    """Whether a control record may stand in a segment and in the middle of a checkpoint.

    Kafka 4.3.1 writes LeaderChange in version 0 only, and reads every version as if it were that one.
    """
    if isinstance(record, LeaderChangeMessage):
        return version == 0
    return not isinstance(record, SnapshotHeaderRecord | SnapshotFooterRecord)


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_kafka_reads_the_opening_of_an_epoch_as_we_do(jars: Path, tmp_path: Path, kraft_version: int) -> None:
    """What a new leader writes first, with voters that have directory ids."""
    voters = tuple(VoterAddress(node, "localhost", 9_090 + node, bytes((node,)) * 16) for node in (1, 2, 3))
    config = quorum_config("cluster", 2, voters[1].directory_id, voters, kraft_version=kraft_version)
    path = write(tmp_path / f"{0:020d}.log", [first_batch(config, {2, 3}, {}, None, TIME)])
    kafka = dump_with_kafka(jars, path)[path]

    assert_equal_dumps(path, kafka)
    assert kafka.records[0]["data"]["grantingVoters"] == [{"voterId": 2}, {"voterId": 3}]


@pytest.mark.parametrize("moment", ["static/m4", "dynamic-small/m1"])
def test_kafka_reads_a_checkpoint_of_an_image_as_we_do(
    jars: Path, kafka_data: Path, tmp_path: Path, moment: str
) -> None:
    """A real cluster's state, written by us as a checkpoint."""
    image = load_image(kafka_data / moment / "log")
    provenance = image.provenance
    path = tmp_path / f"{provenance.end_offset:020d}-{provenance.epoch:010d}.checkpoint"
    path.write_bytes(b"".join(checkpoint_batches(image, TIME, bytes_max=100_000)))
    kafka = dump_with_kafka(jars, path)[path]

    assert_equal_dumps(path, kafka)
    assert {batch["epoch"] for batch in kafka.batches} == {provenance.epoch}
    assert [kafka.records[0]["type"], kafka.records[-1]["type"]] == ["SnapshotHeader", "SnapshotFooter"]
