"""Topics of a request, one by one: who may create, grow, delete and see which (Kafka's ``ControllerApis``).

Before anything is said of a topic it is asked whether its name may be described: whoever may not is told the same of a
topic that is there and of one that is not. What nobody may ask for (a name twice) is left to be refused as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from quorate.controller.permissions.rights import CLUSTER_NAME, Rights
from quorate.controller.protocol import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
)
from quorate.controller.protocol.acls import AclOperation
from quorate.controller.protocol.deletions import DescribeTopicDeletionsResponse
from quorate.controller.protocol.topic_names import METADATA_TOPIC
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage

_FAILED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_MESSAGE: Final = "Topic authorization failed."


def shown_topics(rights: Rights, *operations: AclOperation) -> Callable[[str], bool] | None:
    """Whether the caller may do all of these to a topic, by its name; None: to every one."""
    if rights.is_super:
        return None
    return lambda name: all(rights.may(operation, "TOPIC", name) for operation in operations)


def check_described(rights: Rights, name: str) -> None:
    """Refuse a caller that may not know whether there is such a topic.

    Raises:
        ApiError: TOPIC_AUTHORIZATION_FAILED.
    """
    if not rights.may("DESCRIBE", "TOPIC", name):
        raise ApiError(_FAILED, _lacking(rights, "DESCRIBE"))


def check_deletion_by_name(rights: Rights, image: MetadataImage, name: str) -> None:
    """Refuse a caller that may not delete a topic, or not know that it is not there.

    Raises:
        ApiError: TOPIC_AUTHORIZATION_FAILED.
    """
    if rights.may_on_cluster("DELETE"):
        return
    check_described(rights, name)
    if name in image.topics.by_name and not rights.may("DELETE", "TOPIC", name):
        raise ApiError(_FAILED, _lacking(rights, "DELETE"))


def refused_creations(rights: Rights, request: CreateTopicsRequest) -> dict[int, CreatableTopicResult]:
    """The outcomes, by place, of topics that the caller may not create."""
    if rights.may_on_cluster("CREATE"):
        return {}
    twice = _repeated(topic.name for topic in request.topics)
    message = f"Authorization failed. {rights.lacks(f'CREATE on the cluster ({CLUSTER_NAME})', 'on the topic')}"
    return {
        place: CreatableTopicResult(name=topic.name, error_code=_FAILED, error_message=message)
        for place, topic in enumerate(request.topics)
        if topic.name not in twice and topic.name != METADATA_TOPIC and not rights.may("CREATE", "TOPIC", topic.name)
    }


def with_shown_configs(rights: Rights, response: CreateTopicsResponse) -> CreateTopicsResponse:
    """The same without what describes the configs of topics that the caller created and may not describe."""
    return response.model_copy(update={"topics": [_with_shown_configs(rights, result) for result in response.topics]})


def _with_shown_configs(rights: Rights, result: CreatableTopicResult) -> CreatableTopicResult:
    if result.error_code is not ErrorCode.NONE or rights.may("DESCRIBE_CONFIGS", "TOPIC", result.name):
        return result
    hidden = {"num_partitions": -1, "replication_factor": -1, "configs": [], "topic_config_error_code": _FAILED}
    return result.model_copy(update=hidden)


def refused_growth(rights: Rights, request: CreatePartitionsRequest) -> dict[int, CreatePartitionsTopicResult]:
    """The outcomes, by place, of topics that the caller may not give more partitions."""
    twice = _repeated(topic.name for topic in request.topics)
    message = _lacking(rights, "ALTER")
    return {
        place: CreatePartitionsTopicResult(name=topic.name, error_code=_FAILED, error_message=message)
        for place, topic in enumerate(request.topics)
        if topic.name not in twice and not rights.may("ALTER", "TOPIC", topic.name)
    }


def refused_deletions(
    rights: Rights, image: MetadataImage, request: DeleteTopicsRequest
) -> dict[int, DeletableTopicResult]:
    """The outcomes, by place, of ids whose topics the caller may not delete, or that there are none of."""
    if rights.may_on_cluster("DELETE"):
        return {}
    twice = _repeated(request.topic_ids)
    refused: dict[int, DeletableTopicResult] = {}
    for place, topic_id in enumerate(request.topic_ids):
        topic = image.topics.by_id.get(topic_id)
        if topic_id in twice:
            continue
        if topic is None:
            # It is not left to the decision, whose state is newer: whose name nobody was asked about is not deleted.
            code, message, name = ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.", None
        elif rights.may("DELETE", "TOPIC", topic.name):
            continue
        elif rights.may("DESCRIBE", "TOPIC", topic.name):
            code, message, name = _FAILED, _lacking(rights, "DELETE"), topic.name
        else:
            code, message, name = _FAILED, _MESSAGE, None
        refused[place] = DeletableTopicResult(topic_id=topic_id, name=name, error_code=code, error_message=message)
    return refused


def shown_deletions(rights: Rights, response: DescribeTopicDeletionsResponse) -> DescribeTopicDeletionsResponse:
    """The same without topics that the caller may not describe."""
    is_shown = shown_topics(rights, "DESCRIBE")
    if is_shown is None:
        return response
    return response.model_copy(update={"topics": [topic for topic in response.topics if is_shown(topic.name)]})


def _lacking(rights: Rights, operation: AclOperation) -> str:
    """Kafka's sentence, and the right that is missing: the caller's own, be the topic there or not."""
    return f"{_MESSAGE} {rights.lacks(f'{operation} on the topic')}"


def _repeated(keys: Iterable[Hashable]) -> frozenset[Hashable]:
    return frozenset(key for key, count in Counter(keys).items() if count > 1)
