"""Configs of groups and of client metrics subscriptions (Kafka's ``GroupConfig`` and ``ClientMetricsConfigs``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quorate.controller.configs.values import (
    ConfigDefinition,
    ConfigDefinitions,
    ConfigType,
    Value,
    invalid_config,
    invalid_value,
    no_empty_items,
    one_of,
    within,
)
from quorate.metadata_log.errors import ApiError, ErrorCode

_DURATION: Final = (
    r"[+]?P(?:([+]?\d{1,15})D)?(T(?=.)(?:([+]?\d{1,15})H)?(?:([+]?\d{1,15})M)?(?:([+]?\d{1,15})(?:[.,]\d{0,9})?S)?)?"
)
_BY_DURATION: Final = "by_duration:"


def _offset_reset(name: str, value: Value) -> None:
    """``earliest``, ``latest``, or a time ago."""
    if value in ("earliest", "latest"):
        return
    duration = value.removeprefix(_BY_DURATION)
    is_form = re.fullmatch(_DURATION, duration, re.ASCII | re.IGNORECASE) is not None
    is_duration = duration != value and is_form and duration[-1].upper() not in "PT"
    if not is_duration:
        forms = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        raise invalid_value(name, value, f"Invalid value `{value}` for configuration {name}. {forms}")


_INT: Final = ConfigType.INT
_D = ConfigDefinition

#: In Kafka's order.
GROUP_CONFIGS: Final = ConfigDefinitions(
    (
        _D("consumer.session.timeout.ms", _INT, "45000", within(1)),
        _D("consumer.heartbeat.interval.ms", _INT, "5000", within(1)),
        _D("consumer.assignment.interval.ms", _INT, "1000", within(0)),
        _D("share.session.timeout.ms", _INT, "45000", within(1)),
        _D("share.heartbeat.interval.ms", _INT, "5000", within(1)),
        _D("share.record.lock.duration.ms", _INT, "30000", within(1000)),
        _D("share.delivery.count.limit", _INT, "5", within(2)),
        _D("share.partition.max.record.locks", _INT, "2000", within(100)),
        _D("share.auto.offset.reset", ConfigType.STRING, "latest", _offset_reset),
        _D("share.isolation.level", ConfigType.STRING, "read_uncommitted",
           one_of("read_committed", "read_uncommitted")),
        _D("share.renew.acknowledge.enable", ConfigType.BOOLEAN, "true"),
        _D("share.assignment.interval.ms", _INT, "1000", within(0)),
        _D("streams.session.timeout.ms", _INT, "45000", within(1)),
        _D("streams.heartbeat.interval.ms", _INT, "5000", within(1)),
        _D("streams.num.standby.replicas", _INT, "0", within(0)),
        _D("streams.initial.rebalance.delay.ms", _INT, "3000", within(0)),
        _D("streams.assignment.interval.ms", _INT, "1000", within(0)),
    )
)  # fmt: skip

#: What a cluster allows its groups, by Kafka's defaults, in the order of Kafka's checks: config, the broker config of
#: its lower bound and that bound, the same of the upper one.
_BOUNDS: Final = (
    ("consumer.heartbeat.interval.ms", "consumer.min.heartbeat.interval.ms", 5_000,
     "consumer.max.heartbeat.interval.ms", 15_000),
    ("consumer.session.timeout.ms", "consumer.min.session.timeout.ms", 45_000,
     "consumer.max.session.timeout.ms", 60_000),
    ("consumer.assignment.interval.ms", "consumer.min.assignment.interval.ms", 0,
     "consumer.max.assignment.interval.ms", 15_000),
    ("share.heartbeat.interval.ms", "share.min.heartbeat.interval.ms", 5_000,
     "share.max.heartbeat.interval.ms", 15_000),
    ("share.session.timeout.ms", "share.min.session.timeout.ms", 45_000, "share.max.session.timeout.ms", 60_000),
    ("share.record.lock.duration.ms", "share.min.record.lock.duration.ms", 15_000,
     "share.max.record.lock.duration.ms", 60_000),
    ("share.delivery.count.limit", "share.min.delivery.count.limit", 2, "share.max.delivery.count.limit", 10),
    ("share.partition.max.record.locks", "share.min.partition.max.record.locks", 100,
     "share.max.partition.max.record.locks", 4_000),
    ("share.assignment.interval.ms", "share.min.assignment.interval.ms", 0,
     "share.max.assignment.interval.ms", 15_000),
    ("streams.heartbeat.interval.ms", "streams.min.heartbeat.interval.ms", 5_000,
     "streams.max.heartbeat.interval.ms", 15_000),
    ("streams.session.timeout.ms", "streams.min.session.timeout.ms", 45_000,
     "streams.max.session.timeout.ms", 60_000),
    ("streams.num.standby.replicas", None, 0, "streams.max.standby.replicas", 2),
    ("streams.assignment.interval.ms", "streams.min.assignment.interval.ms", 0,
     "streams.max.assignment.interval.ms", 15_000),
)  # fmt: skip


def check_group_configs(configs: Mapping[str, str]) -> None:
    """Refuse configs that no group may have.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise invalid_config(f"Unknown group config name: {name}")
    values = GROUP_CONFIGS.parse(configs)
    for name, low_name, low, high_name, high in _BOUNDS:
        if values[name] < low:
            raise invalid_config(f"{name} must be greater than or equal to group.{low_name}")
        if values[name] > high:
            raise invalid_config(f"{name} must be less than or equal to group.{high_name}")
    for kind in ("consumer", "share", "streams"):
        timeout, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[timeout] <= values[interval]:
            raise invalid_config(f"{timeout} must be greater than {interval}")


# --- client metrics ----------------------------------------------------------------------------------

_INTERVAL: Final = "interval.ms"
CLIENT_METRICS_CONFIGS: Final = ConfigDefinitions(
    (
        _D("metrics", ConfigType.LIST, "", no_empty_items),
        _D(_INTERVAL, _INT, "300000"),
        _D("match", ConfigType.LIST, "", no_empty_items),
    )
)
_INTERVAL_MS: Final = range(100, 3_600_001)
_MATCHED: Final = frozenset(
    f"client_{part}"
    for part in ("instance_id", "id", "software_name", "software_version", "source_address", "source_port")
)


def check_client_metrics_configs(configs: Mapping[str, str]) -> None:
    """Refuse what no subscription may say.

    Raises:
        ApiError: INVALID_REQUEST for names and intervals, INVALID_CONFIG for the rest: Kafka's choice.
    """
    for name in configs:
        if name not in CLIENT_METRICS_CONFIGS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    values = CLIENT_METRICS_CONFIGS.parse(configs)
    if values[_INTERVAL] not in _INTERVAL_MS:
        rule = "interval must be between 100 and 3600000 (1 hour)"
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid value {values[_INTERVAL]} for {_INTERVAL}, {rule}")
    for pattern in values["match"]:
        if not _is_match(pattern):
            raise invalid_config(f"Illegal client matching pattern: {pattern}")


def _is_match(pattern: str) -> bool:
    parts = pattern.rstrip("=").split("=")
    if len(parts) != 2 or parts[0].strip() not in _MATCHED:
        return False
    return _could_be_pattern(parts[1].strip())


def _could_be_pattern(text: str) -> bool:
    """Whether Java could read it as a regular expression: nothing left open, nothing repeated that is not there.

    What is wrong inside the brackets only brokers find out.
    """
    parentheses = brackets = 0
    is_escaped = is_quoted = False
    opened_at = -1
    for place, char in enumerate(text):
        if is_escaped:
            is_escaped = False
            is_quoted = char == "Q" or (is_quoted and char != "E")
        elif char == "\\":
            is_escaped = True
        elif is_quoted:
            continue
        elif char == "[":
            brackets += 1
            opened_at = place
        elif char == "]":
            brackets -= brackets > 0 and opened_at != place - 1  # One right behind the opening one is a member.
        elif not brackets:
            parentheses += (char == "(") - (char == ")")
            if parentheses < 0:
                return False
    return not (parentheses or brackets or is_escaped) and not text.startswith(("*", "+", "?"))
