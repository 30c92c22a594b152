"""The rules for topic names (Kafka's ``Topic``)."""

from __future__ import annotations

import re
from typing import Final

from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX

#: The log's own topic, which nobody else may create.
METADATA_TOPIC: Final = "__cluster_metadata"

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """The reason why a topic cannot have this name; None if it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > TOPIC_NAME_CHARS_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{TOPIC_NAME_CHARS_MAX}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def has_collision_chars(name: str) -> bool:
    """Whether another name can look the same where names become metric names: '.' and '_' are one there."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The name as it looks there."""
    return name.replace(".", "_")
