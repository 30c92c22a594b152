"""The sentences for new topics."""

from __future__ import annotations

import pytest

from quorate.controller.protocol import CreatableTopicResult
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.cli.topics.topic_creation import _created


@pytest.mark.parametrize(
    ("hidden", "size"),
    [
        (ErrorCode.NONE, ": partitions 3, replication factor 2."),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, " (its size is told to those who have DESCRIBE_CONFIGS on it)."),
    ],
)
def test_size_of_a_new_topic_is_told_where_its_configs_are(hidden: ErrorCode, size: str) -> None:
    partitions, replicas = (3, 2) if hidden is ErrorCode.NONE else (-1, -1)
    result = CreatableTopicResult(
        name="a", num_partitions=partitions, replication_factor=replicas, topic_config_error_code=hidden
    )
    assert _created(result, is_dry_run=False, if_not_exists=False).done == f"Topic a was created{size}"
