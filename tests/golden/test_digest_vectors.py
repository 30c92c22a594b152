"""The digest's test vectors: whoever computes digests by other means must reach the same.

``QUORATE_REWRITE=1`` writes the file anew. A change in it breaks every digest ever noted down.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.json_form import json_type, record_data, record_from_data
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.digest import canonical_value, digest_bytes, entry_leaf, root, topic_leaf
from quorate.snapshots.image_digest import digest_image

VECTORS = Path(__file__).parent / "digest_vectors.json"
CAPTURED = ("static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1")

TOPIC = bytes(range(16))
DIRECTORIES = (b"\xff" * 16, b"\x01" * 16, b"\x7f" * 16)


def examples() -> Iterator[tuple[str, list[Any]]]:
    """States by name, as the records of a snapshot; in each one thing is worth a look."""
    yield "empty", []
    yield "feature", [r.FeatureLevelRecord("metadata.version", 30)]
    yield from topic_examples()
    yield from registration_examples()
    yield from resource_examples()


def topic_examples() -> Iterator[tuple[str, list[Any]]]:
    partition = r.PartitionRecord(
        partition_id=0,
        topic_id=TOPIC,
        replicas=(3, 1, 2),
        isr=(2, 3),
        leader=3,
        leader_epoch=5,
        partition_epoch=9,
        directories=DIRECTORIES,
    )
    yield "topic without partitions", [r.TopicRecord("t", TOPIC)]
    yield "topic with one partition", [r.TopicRecord("t", TOPIC), partition]
    yield (
        "topic with two partitions, the second first, its sets unsorted",
        [
            r.TopicRecord("t", TOPIC),
            r.PartitionRecord(
                partition_id=1,
                topic_id=TOPIC,
                replicas=(3, 1, 2),
                removing_replicas=(3, 2),
                adding_replicas=(2, 1),
                leader_recovery_state=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=DIRECTORIES,
                eligible_leader_replicas=(9, 1),
                last_known_elr=(2, -1),
            ),
            partition,
        ],
    )


def registration_examples() -> Iterator[tuple[str, list[Any]]]:
    yield (
        "broker whose sets are unsorted",
        [
            r.RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=TOPIC,
                broker_epoch=8,
                end_points=(r.BrokerEndpoint("SASL", "h", 2, 2), r.BrokerEndpoint("PLAINTEXT", "h", 1, 0)),
                features=(r.BrokerFeature("metadata.version", 7, 30), r.BrokerFeature("group.version", 0, 1)),
                rack="a",
                fenced=False,
                log_dirs=DIRECTORIES,
            )
        ],
    )
    voters = (
        r.VotersVoter(
            2, TOPIC, (r.VoterEndpoint("B", "h", 2), r.VoterEndpoint("A", "h", 1)), r.KRaftVersionFeature(0, 1)
        ),
        r.VotersVoter(1, TOPIC, (), r.KRaftVersionFeature(0, 1)),
    )
    yield "voters in the log", [r.KRaftVersionRecord(1), r.VotersRecord(voters)]


def resource_examples() -> Iterator[tuple[str, list[Any]]]:
    yield (
        "one entry of every other kind",
        [
            r.RegisterControllerRecord(3000, TOPIC, False, (r.ControllerEndpoint("C", "h", 3, 0),), ()),
            r.ConfigRecord(2, "t", "retention.ms", "5"),
            r.ClientQuotaRecord(
                (r.EntityData("user", None), r.EntityData("client-id", "x")), "request_percentage", 12.5
            ),
            r.ProducerIdsRecord(-1, -1, 2000),
            r.AccessControlEntryRecord(TOPIC, 2, "t", 3, "User:x", "*", 3, 3),
            r.UserScramCredentialRecord("x", 1, b"salt", b"stored", b"server", 4096),
            r.DelegationTokenRecord("User:x", "User:y", ("User:z", "User:a"), 1, 3, 2, "token"),
            r.ZkMigrationStateRecord(3),
        ],
    )


def newest(record: Any) -> int:
    return {"RegisterBrokerRecord": 4, "PartitionRecord": 2}.get(type(record).__name__, 0)


def digest_of(records: list[Any]) -> tuple[list[str], str]:
    """The leaves, in the order of their first records, and the root."""
    partitions = [record for record in records if isinstance(record, r.PartitionRecord)]
    leaves = [
        topic_leaf(record, partitions) if isinstance(record, r.TopicRecord) else entry_leaf(record)
        for record in records
        if not isinstance(record, r.PartitionRecord)
    ]
    return [digest_bytes(leaf).hex() for leaf in leaves], digest_bytes(root(leaves)).hex()


def vector(name: str, records: list[Any]) -> dict[str, Any]:
    leaves, digest = digest_of(records)
    rows = [{"type": json_type(x), "version": newest(x), "data": record_data(x, newest(x))} for x in records]
    values = [canonical_value(record).hex() for record in records]
    return {"name": name, "records": rows, "canonical_values": values, "leaves": leaves, "digest": digest}


def test_digest_of_every_vector_is_as_written_down(kafka_data: Path) -> None:
    made = {
        "examples": [vector(name, records) for name, records in examples()],
        "captured": {moment: digest_image(load_image(kafka_data / moment / "log")).text for moment in CAPTURED},
    }
    if os.environ.get("QUORATE_REWRITE"):
        VECTORS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

    assert made == json.loads(VECTORS.read_text(encoding="utf-8"))


def test_vectors_can_be_followed_from_their_records_alone() -> None:
    for example in json.loads(VECTORS.read_text(encoding="utf-8"))["examples"]:
        records = [record_from_data(row["type"], row["version"], row["data"]).record for row in example["records"]]

        assert digest_of(records) == (example["leaves"], example["digest"]), example["name"]


def test_digest_of_captured_image_is_that_of_kafkas_own_records(kafka_data: Path) -> None:
    """From ``image.jsonl.gz`` alone, without any replay."""
    expected = json.loads(VECTORS.read_text(encoding="utf-8"))["captured"]["static/m2"]
    with gzip.open(kafka_data / "static/m2/image.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    records = [record_from_data(row["type"], row["version"], row["data"]).record for row in rows]
    by_topic: dict[bytes, list[Any]] = {}
    for record in records:
        if isinstance(record, r.PartitionRecord):
            by_topic.setdefault(record.topic_id, []).append(record)
    leaves = [
        topic_leaf(record, by_topic.get(record.topic_id, []))
        if isinstance(record, r.TopicRecord)
        else entry_leaf(record)
        for record in records
        if not isinstance(record, r.PartitionRecord)
    ]

    assert digest_bytes(root(leaves)).hex() == expected
