"""Configs that a topic starts with: what the controller must understand of them.

This is the place of Kafka's ``ControllerConfigurationValidator``. So far it checks the configs that decisions depend
on; other names and values are stored as they come.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.partition_view import MIN_ISR_CONFIG, UNCLEAN_CONFIG
from controller.protocol import TopicConfig
from metadata_log.errors import ApiError, ErrorCode


def check_topic_configs(configs: Iterable[TopicConfig]) -> None:
    """Refuse configs that decisions could not be made by.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    entries = list(configs)
    unset = sorted(entry.name for entry in entries if entry.value is None)
    if unset:
        problem = f"Null value not supported for topic configs: {','.join(unset)}"
        raise ApiError(ErrorCode.INVALID_CONFIG, problem)
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise ApiError(ErrorCode.INVALID_CONFIG, "A config is named twice.")
    for entry in entries:
        value_problem = _value_problem(entry.name, entry.value or "")
        if value_problem is not None:
            start = f"Invalid value {entry.value} for configuration {entry.name}"
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{start}: {value_problem}")


def _value_problem(name: str, value: str) -> str | None:
    if name == MIN_ISR_CONFIG:
        try:
            number = int(value)
        except ValueError:
            return "Not a number of type INT"
        return None if number >= 1 else "Value must be at least 1"
    if name == UNCLEAN_CONFIG and value.strip().lower() not in ("true", "false"):
        return "Expected value to be either true or false"
    return None
