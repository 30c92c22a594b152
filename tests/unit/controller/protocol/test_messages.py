"""Messages that a program makes wrongly, and calls that it makes with something else."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError

from quorate.client import (
    AlterUserScramCredentialsRequest,
    ControllerClient,
    CreatableTopic,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    InvalidArgument,
    LabelEntry,
    QuorateError,
    RenewDelegationTokenRequest,
    TlsFiles,
    TlsPaths,
)

#: As type checkers would not let them be used.
Topic: Any = CreatableTopic
Topics: Any = CreateTopicsRequest
Renewal: Any = RenewDelegationTokenRequest
Credentials: Any = AlterUserScramCredentialsRequest
Configs: Any = IncrementalAlterConfigsRequest
Client: Any = ControllerClient
Paths: Any = TlsPaths
Files: Any = TlsFiles


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Topic(name=1), "CreatableTopic: name: Input should be a valid string, not 1"),
        (lambda: Topic(nom="a", name="a"), "CreatableTopic: nom: is not known"),
        (lambda: Topic(), "CreatableTopic: name: must be given"),
        (lambda: Topic("orders"), "CreatableTopic: its fields are given by name"),
        (
            lambda: Topics(topics=[{"name": "a", "num_partitions": "3"}]),
            "CreateTopicsRequest: topics.0.num_partitions: Input should be a valid integer, not '3'",
        ),
    ],
)
def test_message_that_cannot_be_is_an_error_of_ours_that_names_field_value_and_rule(
    make: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(QuorateError) as refused:
        make()
    assert isinstance(refused.value, InvalidArgument)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "make",
    [
        lambda: Renewal(hmac="hu" + "sh!", renew_period_ms=1),
        lambda: Credentials(deletions=[], upsertions=["hu" + "sh"]),
        lambda: Configs(
            resources=[
                {"resource_type": "BROKER", "resource_name": "1", "configs": [{"name": "p", "value": ["hu" + "sh"]}]}
            ]
        ),
    ],
)
def test_message_with_secrets_is_refused_without_them(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make()
    assert "hush" not in "".join(traceback.format_exception(refused.value))
    assert refused.value.__context__ is None


def test_message_from_outside_is_refused_by_who_reads_it() -> None:
    """In words for whoever sent it."""
    with pytest.raises(ValidationError):
        LabelEntry.model_validate({"resource": "cluster"})


async def test_calls_of_a_client_refuse_other_types_by_name_and_send_nothing() -> None:
    with pytest.raises(InvalidArgument, match=r"^ControllerClient: urls must be Sequence of str, not str$"):
        Client("127.0.0.1:1")
    async with Client(["127.0.0.1:1"], timeout_ms=300) as client:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "create_topics: request must be CreateTopicsRequest, not dict": lambda: client.create_topics({}),
            "describe_topic: name must be str, not NoneType": lambda: client.describe_topic(None),
            "describe_broker: broker_id must be int, not str": lambda: client.describe_broker("1"),
            "LabelClient.of: resource must be str, not int": lambda: client.labels.of(1),
            "describe_acls: wanted must be AclFilter, not dict": lambda: client.access.describe_acls({}),
        }
        for said, call in calls.items():
            with pytest.raises(InvalidArgument, match=said):
                await call()


def test_text_is_taken_where_a_path_is_meant() -> None:
    assert Paths("cert.pem", "key.pem", ["ca.pem"]).ca_files[0].name == "ca.pem"
    for paths, said in (
        ((1,), "cert_file must be a path, not int"),
        ((None, None, "ca.pem"), "ca_files must be a seq"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            Paths(*paths)
    with pytest.raises(InvalidArgument, match="TlsFiles: paths must be TlsPaths, not str"):
        Files("ca.pem")
