"""Records in the JSON of Kafka's dump tool. Against Kafka's own output: tests/golden/test_kafka_logs.py."""

from typing import Any

import pytest

from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.json_form import json_type, record_data, record_from_data
from quorate.metadata_log.records.records import (
    ClientQuotaRecord,
    EntityData,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
    VersionedRecord,
)

TOPIC = bytes(range(16))
TOPIC_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def test_tagged_fields_at_their_default_are_absent() -> None:
    record = PartitionChangeRecord(7, TOPIC, isr=(), leader=-1)
    assert record_data(record, 2) == {"partitionId": 7, "topicId": TOPIC_TEXT, "isr": [], "leader": -1}


def test_fields_that_the_version_does_not_carry_are_absent() -> None:
    older, newer = (record_data(RegisterBrokerRecord(1), version) for version in (0, 4))
    assert newer.keys() - older.keys() == {"isMigratingZkBroker", "inControlledShutdown"}
    assert newer["rack"] is None


def test_structs_bytes_and_names_are_kafkas() -> None:
    quota = ClientQuotaRecord((EntityData("user", None),), "k", 2.0)
    assert record_data(quota, 0) == {
        "entity": [{"entityType": "user", "entityName": None}],
        "key": "k",
        "value": 2.0,
        "remove": False,
    }
    scram = UserScramCredentialRecord("ana", 1, b"\xff\xfe", b"", b"\0", 8_192)
    assert record_data(scram, 0)["salt"] == "//4="
    assert json_type(quota) == "CLIENT_QUOTA_RECORD"


def test_missing_tagged_fields_get_their_default_from_json() -> None:
    data = {"partitionId": 7, "topicId": TOPIC_TEXT}
    assert record_from_data("PARTITION_CHANGE_RECORD", 2, data) == VersionedRecord(PartitionChangeRecord(7, TOPIC), 2)


@pytest.mark.parametrize(
    ("type_name", "version", "data", "reason"),
    [
        ("TOPIC", 0, {}, "no record type 'TOPIC' with version 0"),
        ("TOPIC_RECORD", 1, {}, "no record type 'TOPIC_RECORD' with version 1"),
        ("TOPIC_RECORD", 0, {"name": "a"}, "field 'topicId' is missing"),
        ("TOPIC_RECORD", 0, {"name": "a", "topicId": TOPIC_TEXT, "x": 1}, "unknown field 'x'"),
        ("TOPIC_RECORD", 0, {"name": None, "topicId": TOPIC_TEXT}, "name must not be null"),
        ("TOPIC_RECORD", 0, {"name": 5, "topicId": TOPIC_TEXT}, "name is 5: no string"),
        ("TOPIC_RECORD", 0, {"name": "a", "topicId": "short"}, "'short' is no uuid"),
        ("TOPIC_RECORD", 0, {"name": "a", "topicId": 5}, "TOPIC_RECORD version 0"),
        ("TOPIC_RECORD", 0, [], "TOPIC_RECORD version 0"),
        ("FENCE_BROKER_RECORD", 0, {"id": True, "epoch": 1}, "id is True: no int32"),
        ("FENCE_BROKER_RECORD", 0, {"id": 1.5, "epoch": 1}, "id is 1.5: no int32"),
        ("PARTITION_CHANGE_RECORD", 0, {"partitionId": 1, "topicId": TOPIC_TEXT, "isr": "12"}, "isr must be an array"),
        ("PARTITION_CHANGE_RECORD", 0, {"partitionId": 1, "topicId": TOPIC_TEXT, "isr": ["1"]}, "isr is '1'"),
        ("PARTITION_CHANGE_RECORD", 0, {"partitionId": 1, "topicId": TOPIC_TEXT, "directories": []}, "'directories'"),
    ],
)
def test_json_that_kafka_would_refuse_is_refused_with_its_reason(
    type_name: str, version: int, data: Any, reason: str
) -> None:
    with pytest.raises(MalformedData, match=reason):
        record_from_data(type_name, version, data)


def test_whole_number_is_a_float_where_one_is_due() -> None:
    """JSON writers drop the point: 2 and 2.0 are the same number to them."""
    data = {"entity": [], "key": "k", "value": 2, "remove": False}
    record = record_from_data("CLIENT_QUOTA_RECORD", 0, data).record
    assert isinstance(record, ClientQuotaRecord)
    assert type(record.value) is float


def test_text_that_is_not_ascii_stays_as_it_is() -> None:
    assert record_data(TopicRecord("ü", TOPIC), 0) == {"name": "ü", "topicId": uuid_text(TOPIC)}
