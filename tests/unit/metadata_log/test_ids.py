"""Uuids: 16 bytes inside, Kafka's 22 characters outside."""

import pytest
from hypothesis import given

from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import METADATA_TOPIC_ID, ZERO_UUID, is_reserved_uuid, uuid_from_text, uuid_text
from tests.strategies import uuids


def test_metadata_topic_id_reads_as_kafka_prints_it() -> None:
    assert uuid_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"


@given(uuids)
def test_uuid_through_its_text_comes_back(value: bytes) -> None:
    assert uuid_from_text(uuid_text(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAAAB",
        "é" * 22,
    ],
    ids=["empty", "short", "long", "plus sign", "bits that mean nothing", "not ASCII"],
)
def test_text_that_is_no_uuid_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidId) as refusal:
        uuid_from_text(text)
    assert repr(text[:40]) in str(refusal.value)


def test_reserved_uuids_are_the_first_hundred() -> None:
    assert is_reserved_uuid((99).to_bytes(16, "big"))
    assert not is_reserved_uuid((100).to_bytes(16, "big"))
