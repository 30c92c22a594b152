"""Images against what Apache Kafka itself says at every captured moment."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.records.hidden_values import no_secrets
from quorate.metadata_log.records.json_form import json_type, record_data
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.whole_checkpoints import load_checkpoint
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.as_json import PARTITION_COLUMNS, image_json

MOMENTS = ("static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1")
#: Moments whose log reaches back to offset 0.
WHOLE_LOGS = ("static/m1", "static/m2", "static/m3", "dynamic-small/m1")
UNORDERED = ("eligibleLeaderReplicas", "lastKnownElr")


def canonical(row: dict[str, Any]) -> str:
    """A record in the form in which two are compared: order inside ELR and last-known ELR has no meaning."""
    data = {name: sorted(value) if name in UNORDERED else value for name, value in row["data"].items()}
    return json.dumps({**row, "data": data}, sort_keys=True)


def record_rows(image: MetadataImage) -> list[dict[str, Any]]:
    """The image in the form of ``image.jsonl.gz``."""
    return [
        {"type": json_type(record), "version": version, "data": record_data(record, version)}
        for record, version in image_records(image)
    ]


def kafka_rows(directory: Path) -> list[dict[str, Any]]:
    """Kafka's own image, as it would write it to a snapshot."""
    with gzip.open(directory / "image.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def assert_same_records(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    mine, kafkas = {canonical(row) for row in ours}, {canonical(row) for row in theirs}
    assert not mine - kafkas, f"only ours: {sorted(mine - kafkas)[:3]}"
    assert not kafkas - mine, f"only Kafka's: {sorted(kafkas - mine)[:3]}"
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("moment", MOMENTS)
def test_image_of_captured_directory_equals_kafkas_own_image(kafka_data: Path, moment: str) -> None:
    image = load_image(kafka_data / moment / "log")

    assert_same_records(record_rows(image), kafka_rows(kafka_data / moment))


@pytest.mark.parametrize("moment", ["static/m1", "static/m2", "dynamic-small/m1"])
def test_image_of_follower_directory_equals_leaders(kafka_data: Path, moment: str) -> None:
    assert load_image(kafka_data / moment / "log-follower") == load_image(kafka_data / moment / "log")


@pytest.mark.parametrize("moment", WHOLE_LOGS)
def test_image_of_segments_alone_equals_that_from_checkpoint(kafka_data: Path, moment: str, tmp_path: Path) -> None:
    """The same log without its checkpoints: replay from offset 0 must reach the same image."""
    source = kafka_data / moment / "log" / "__cluster_metadata-0"
    for segment in source.glob("*.log"):
        (tmp_path / segment.name).write_bytes(segment.read_bytes())
    first = source / f"{0:020d}-{0:010d}.checkpoint"  # a dynamic quorum's first voter set, not in the log
    if first.exists():
        (tmp_path / first.name).write_bytes(first.read_bytes())

    assert load_image(tmp_path) == load_image(source)


@pytest.mark.parametrize("moment", WHOLE_LOGS)
def test_every_kafka_checkpoint_equals_log_replayed_to_its_offset(
    kafka_data: Path, moment: str, tmp_path: Path
) -> None:
    source = kafka_data / moment / "log" / "__cluster_metadata-0"
    for segment in source.glob("*.log"):
        (tmp_path / segment.name).write_bytes(segment.read_bytes())
    for file in find_files(source):
        if not file.is_checkpoint or not file.offset:
            continue
        from_checkpoint, from_log = load_checkpoint(file), load_image(tmp_path, file.offset)

        assert_same_records(record_rows(from_checkpoint), record_rows(from_log))
        assert from_checkpoint.provenance == from_log.provenance
        assert from_checkpoint.partitions == from_log.partitions


@pytest.mark.parametrize("moment", MOMENTS)
def test_json_of_image_agrees_with_what_the_cluster_answered(kafka_data: Path, moment: str) -> None:
    expected = json.loads((kafka_data / moment / "expected.json").read_text(encoding="utf-8"))
    state = image_json(load_image(kafka_data / moment / "log"), no_secrets)

    assert state["features"] == expected["features"]
    assert {str(row["id"]): row["incarnation_id"] for row in state["controllers"]} == (
        expected["controller"]["registered"]
    )
    assert_same_brokers(state["brokers"], expected["brokers"])
    for key in ("topic_configs", "client_metrics_configs", "group_configs", "next_producer_id", "reassignments"):
        assert state[key] == expected[key], key
    assert state["broker_configs"] == expected["broker_configs_in_log"]
    assert unordered(state["client_quotas"]) == unordered(expected["client_quotas"])
    assert {user: unordered(rows) for user, rows in state["scram"].items()} == (
        {user: unordered(rows) for user, rows in expected["scram"].items()}
    )
    assert unordered(without(row, "id") for row in state["acls"]) == unordered(expected["acls"] or [])
    assert {id_: token["owner"] for id_, token in state["delegation_tokens"].items()} == expected["delegation_tokens"]
    assert state["provenance"]["last_contained_offset"] == expected["log"]["last_record_offset"]
    assert_same_topics(state["topics"], expected)


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


def unordered(rows: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def assert_same_brokers(brokers: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [broker["id"] for broker in brokers] == [broker["id"] for broker in expected]
    for broker, theirs in zip(brokers, expected, strict=True):
        addresses = [(listener["host"], listener["port"]) for listener in broker["listeners"]]
        assert (theirs["host"], theirs["port"]) in addresses
        for key in theirs.keys() - {"host", "port"}:
            assert broker[key] == theirs[key], f"broker {broker['id']}: {key}"


def assert_same_topics(topics: dict[str, Any], expected: dict[str, Any]) -> None:
    columns = expected["partition_columns"]
    assert list(PARTITION_COLUMNS[: len(columns)]) == columns
    assert topics.keys() == expected["topics"].keys()
    sets = [columns.index(name) for name in ("elr", "last_known_elr", "offline_replicas")]
    for name, theirs in expected["topics"].items():
        ours = topics[name]
        assert (ours["id"], ours["internal"]) == (theirs["id"], theirs["internal"])
        assert ours["partitions"].keys() == theirs["partitions"].keys()
        for number, row in theirs["partitions"].items():
            mine = ours["partitions"][number][: len(columns)]
            for at in sets:
                mine[at], row[at] = sorted(mine[at]), sorted(row[at])
            assert mine == row, f"{name}-{number}"
