"""Outcomes in an answer: which were refused, by name, and that none is passed over."""

import pytest

from quorate.controller.client.outcomes import Refused, RefusedItem, checked
from quorate.controller.protocol.acls import AclCreationResult, CreateAclsResponse
from quorate.controller.protocol.partitions import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResult,
    ReassignableTopicResult,
)
from quorate.controller.protocol.topics import CreatableTopicResult, CreateTopicsResponse
from quorate.metadata_log.errors import ApiError, ErrorCode

EXISTS, UNKNOWN = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def topic(name: str, code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def test_answer_without_a_refusal_is_handed_back() -> None:
    answer = CreateTopicsResponse(topics=[topic("a"), topic("b")])

    assert checked(answer) is answer


def test_refused_topics_are_named_with_code_and_reason() -> None:
    answer = CreateTopicsResponse(topics=[topic("a"), topic("b", EXISTS, "it exists"), topic("c", UNKNOWN)])
    with pytest.raises(Refused) as raised:
        checked(answer)

    assert raised.value.items == (RefusedItem("b", EXISTS, "it exists"), RefusedItem("c", UNKNOWN, "refused"))
    assert raised.value.code is EXISTS
    assert str(raised.value) == "b: it exists (TOPIC_ALREADY_EXISTS); c: refused (UNKNOWN_TOPIC_OR_PARTITION)"
    assert isinstance(raised.value, ApiError)


def test_refused_partition_is_named_with_its_topic() -> None:
    partitions = [
        ReassignablePartitionResult(partition_index=number, error_code=code, error_message="why")
        for number, code in enumerate([ErrorCode.NONE, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN])
    ]
    answer = AlterPartitionReassignmentsResponse(
        responses=[ReassignableTopicResult(name="orders", partitions=partitions)]
    )
    with pytest.raises(Refused, match=r"^orders-1: why .*; orders-3: why [^;]*; and 2 more$") as raised:
        checked(answer)

    assert [item.subject for item in raised.value.items] == [f"orders-{number}" for number in range(1, 6)]


def test_refused_item_without_a_name_has_its_reason() -> None:
    answer = CreateAclsResponse(results=[AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no")])
    with pytest.raises(Refused, match=r"^no \(INVALID_REQUEST\)$"):
        checked(answer)
