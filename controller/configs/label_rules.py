"""The rules of labels: what may have them, with which keys and values. A refusal names the value and the rule."""

from __future__ import annotations

import re
from typing import Final

from quorate.controller.protocol.labels import LabelEntry
from quorate.controller.protocol.topic_names import name_problem
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage

#: Bytes of a value in UTF-8: labels are read and kept in memory by every controller and every broker.
VALUE_BYTES_MAX: Final = 4_096
#: Labels of one resource: they are copied when one of them changes.
LABELS_PER_RESOURCE_MAX: Final = 128
#: Labels in all: each is a few hundred bytes of memory beside its value, in every process.
LABELS_MAX: Final = 100_000

_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_NUMBER_MAX: Final = 2**31 - 1
_SHOWN_CHARS_MAX: Final = 100


def check_label(entry: LabelEntry) -> None:
    """Refuse a label that cannot be; whether its resource exists is another question.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    check_resource_form(entry.resource)
    namespace, _, name = entry.key.partition("/")
    if not _NAMESPACE.fullmatch(namespace) or not _NAME.fullmatch(name):
        raise _invalid(
            f"{shown(entry.key)} is no key of a label: it has the form NAMESPACE/NAME, where NAMESPACE has 1 to 63 "
            "lower case letters, digits, '.' and '-', NAME has 1 to 128 letters, digits, '.', '_' and '-', and both "
            "begin with a letter or digit."
        )
    size = 0 if entry.value is None else len(entry.value.encode())
    if size > VALUE_BYTES_MAX:
        where = f"The value of label {entry.key} of {entry.resource}"
        raise _invalid(f"{where} has {size} bytes in UTF-8; {VALUE_BYTES_MAX} is the most.")


def check_resource_form(resource: str) -> None:
    """Refuse what can have no labels, whatever is in the cluster.

    Raises:
        ApiError: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION.
    """
    kind, colon, name = resource.partition(":")
    topic, _, number = name.rpartition("-")
    if kind == "topic" or (kind == "partition" and _is_number(number)):
        problem = name_problem(name if kind == "topic" else topic)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        return
    is_known = (
        (kind == "cluster" and not colon)
        or (kind == "broker" and _is_number(name))
        or (kind == "record" and _NAME.fullmatch(name) is not None)
    )
    if not is_known:
        raise _invalid(
            f"{shown(resource)} can have no labels: it is none of cluster, topic:NAME, partition:TOPIC-NUMBER, "
            "broker:ID and record:NAME (NAME of 1 to 128 letters, digits, '.', '_' and '-', the first a letter or "
            f"digit; numbers from 0 to {_NUMBER_MAX} without leading zeros)."
        )


def check_resource_exists(image: MetadataImage, resource: str) -> None:
    """Refuse a resource that is not there. The cluster always is, and a record is there by being labelled.

    Args:
        resource: of a form that can be.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED.
    """
    kind, _, name = resource.partition(":")
    if kind == "broker" and int(name) not in image.cluster.brokers:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} is registered.")
    if kind == "topic" and name not in image.topics.by_name:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == "partition":
        topic, _, number = name.rpartition("-")
        known = image.topics.by_name.get(topic)
        if known is None or image.partitions.row(known.id, int(number)) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The partition {name} does not exist.")


def shown(text: str | None) -> str:
    """A value in a sentence: quoted, and its beginning where it is long."""
    if text is None or len(text) <= _SHOWN_CHARS_MAX:
        return repr(text)
    return f"{text[:_SHOWN_CHARS_MAX]!r}..."


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and int(text) <= _NUMBER_MAX


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
