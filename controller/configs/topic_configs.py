"""Configs of topics: all that Kafka 4.3.1 has (its ``LogConfig``), and what must hold among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from quorate.controller.configs.values import (
    ConfigDefinition,
    ConfigDefinitions,
    ConfigType,
    Value,
    each_of,
    invalid_config,
    invalid_value,
    one_of,
    within,
    within_or,
)

MIN_ISR_CONFIG: Final = "min.insync.replicas"
UNCLEAN_CONFIG: Final = "unclean.leader.election.enable"

_LONG_MAX: Final = str(2**63 - 1)
_THROTTLED_REPLICA: Final = r"(?:[0-9]+:[0-9]+)?"


def _throttled_replicas(name: str, value: Value) -> None:
    """``partition:broker`` pairs, or all of them."""
    if value != ("*",) and not all(re.fullmatch(_THROTTLED_REPLICA, item) for item in value):
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        rule = f"{name} must be the literal '*' or a list of replicas in the following format: {form}"
        raise invalid_value(name, value, rule)


_BOOLEAN, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
_STRING, _LIST = ConfigType.STRING, ConfigType.LIST
_D = ConfigDefinition

#: In Kafka's order, which decides whose error is told.
TOPIC_CONFIGS: Final = ConfigDefinitions(
    (
        _D("segment.bytes", _INT, str(2**30), within(2**20)),
        _D("segment.ms", _LONG, "604800000", within(1)),
        _D("segment.jitter.ms", _LONG, "0", within(0)),
        _D("segment.index.bytes", _INT, "10485760", within(4)),
        _D("flush.messages", _LONG, _LONG_MAX, within(1)),
        _D("flush.ms", _LONG, _LONG_MAX, within(0)),
        _D("retention.bytes", _LONG, "-1"),
        _D("retention.ms", _LONG, "604800000", within(-1)),
        _D("max.message.bytes", _INT, "1048588", within(0)),
        _D("index.interval.bytes", _INT, "4096", within(0)),
        _D("delete.retention.ms", _LONG, "86400000", within(0)),
        _D("min.compaction.lag.ms", _LONG, "0", within(0)),
        _D("max.compaction.lag.ms", _LONG, _LONG_MAX, within(1)),
        _D("file.delete.delay.ms", _LONG, "60000", within(0)),
        _D("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", within(0, 1)),
        _D("cleanup.policy", _LIST, "delete", each_of("compact", "delete")),
        _D(UNCLEAN_CONFIG, _BOOLEAN, "false"),
        _D(MIN_ISR_CONFIG, _INT, "1", within(1)),
        _D("compression.type", _STRING, "producer",
           one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        _D("compression.gzip.level", _INT, "-1", within_or(1, 9, -1)),
        _D("compression.lz4.level", _INT, "9", within(1, 17)),
        _D("compression.zstd.level", _INT, "3", within(-131072, 22)),
        _D("preallocate", _BOOLEAN, "false"),
        _D("message.timestamp.type", _STRING, "CreateTime", one_of("CreateTime", "LogAppendTime")),
        _D("message.timestamp.before.max.ms", _LONG, _LONG_MAX, within(0)),
        _D("message.timestamp.after.max.ms", _LONG, "3600000", within(0)),
        _D("leader.replication.throttled.replicas", _LIST, "", _throttled_replicas),
        _D("follower.replication.throttled.replicas", _LIST, "", _throttled_replicas),
        _D("remote.storage.enable", _BOOLEAN, "false"),
        _D("local.retention.ms", _LONG, "-2", within(-2)),
        _D("local.retention.bytes", _LONG, "-2", within(-2)),
        _D("remote.log.copy.disable", _BOOLEAN, "false"),
        _D("remote.log.delete.on.disable", _BOOLEAN, "false"),
        _D("internal.segment.bytes", _INT, None, is_internal=True),
    )
)  # fmt: skip

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

#: Broker configs that hold where a topic has none of its own, the first that is set; with what their number is
#: multiplied. A name that is missing here stands for no broker config.
BROKER_SYNONYMS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "max.message.bytes": (("message.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    UNCLEAN_CONFIG: ((UNCLEAN_CONFIG, 1),),
    MIN_ISR_CONFIG: ((MIN_ISR_CONFIG, 1),),
    "compression.type": (("compression.type", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "preallocate": (("log.preallocate", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
}


def check_topic_configs(configs: Mapping[str, str]) -> dict[str, Value]:
    """The values of a topic's configs, defaults included (Kafka's ``LogConfig.validate``).

    Raises:
        ApiError: INVALID_CONFIG.
    """
    for name in configs:
        if name not in TOPIC_CONFIGS:
            raise invalid_config(f"Unknown topic config name: {name}")
    values = TOPIC_CONFIGS.parse(configs)
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if shortest > longest:
        raise invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )
    return values


def check_tiered_storage(values: Mapping[str, Value], present: Mapping[str, str]) -> None:
    """Refuse tiered storage, which Kafka too has switched off unless its static configuration says otherwise.

    Args:
        values: what is to hold. present: what the topic has set now; an imported one may have it on.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    if values["remote.storage.enable"]:
        raise invalid_config(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )
    was_on = present.get("remote.storage.enable", "false").lower() == "true"
    if was_on and not values["remote.log.delete.on.disable"]:
        raise invalid_config(
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data "
            "and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want "
            "to disable remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )
