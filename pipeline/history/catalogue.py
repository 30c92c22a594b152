"""Every version of brokers, topics and configs: the rare records replayed in order, what differs is a version.

The state at the end, as records, is what a history that is gone on with begins with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa

from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.hidden_values import IsSecret, no_secrets, shown_value
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.fold.catalogue import Catalogue
from quorate.pipeline.fold.timeline import BASE_OFFSET, Located
from quorate.pipeline.history.cells import RareRecord
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.tables.history_schema import BROKER_VERSIONS, CONFIG_VERSIONS, TOPIC_VERSIONS

_TOPIC_RESOURCE: Final = 2
_OF_BROKERS: Final = (
    r.RegisterBrokerRecord,
    r.UnregisterBrokerRecord,
    r.FenceBrokerRecord,
    r.UnfenceBrokerRecord,
    r.BrokerRegistrationChangeRecord,
)


class _Versions:
    """The versions of one table so far."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._open: dict[Hashable, dict[str, Any]] = {}

    def put(self, key: Hashable, state: dict[str, Any], place: _Place) -> None:
        """Let ``about`` hold for ``key`` from here on; nothing happens where it holds already."""
        before = self._open.get(key)
        if before is not None and all(before[name] == value for name, value in state.items()):
            return
        change = "base" if place.is_base else "created" if before is None else "changed"
        if before is not None:
            _close(before, place, removed=False)
        row = {
            **state,
            "valid_from_offset": place.offset,
            "valid_to_offset": None,
            "valid_from": place.time_us,
            "valid_to": None,
            "record_offset": place.record_offset,
            "change": change,
            "removed": False,
        }
        self._open[key] = row
        self.rows.append(row)

    def remove(self, key: Hashable, place: _Place) -> None:
        """It is gone, if it was there."""
        before = self._open.pop(key, None)
        if before is not None:
            _close(before, place, removed=True)

    def since(self, key: Hashable) -> int:
        """From when on what is about ``key`` is as it is now, milliseconds since 1970."""
        time_us: int = self._open[key]["valid_from"]
        return time_us // 1000


def _close(row: dict[str, Any], place: _Place, *, removed: bool) -> None:
    row["valid_to_offset"], row["valid_to"], row["removed"] = place.offset, place.time_us, removed


class _Place:
    """The place of a record, and the offset from which on it holds."""

    def __init__(self, record_offset: int, timeline: Timeline, base: tuple[int, int] | None) -> None:
        self.is_base = record_offset < 0
        if base is not None and self.is_base:
            self.offset, time = base
            self.record_offset = self.offset
        else:
            self.offset, time = timeline.effective_one(record_offset)
            self.record_offset = record_offset
        self.time_us = time * 1000


@dataclass(frozen=True, slots=True)
class CatalogueVersions:
    """The versions of everything but partitions, and the state at the end."""

    brokers: _Versions
    topics: _Versions
    configs: _Versions
    catalogue: Catalogue

    @classmethod
    def of(cls, timeline: Timeline, base: tuple[int, int] | None) -> Self:
        """Those of a timeline; ``base`` as ``partitions.partition_versions`` takes it.

        Raises:
            FoldRefused: the first record that cannot be.
        """
        found = cls(_Versions(), _Versions(), _Versions(), Catalogue())
        for located in timeline.counted:
            found._replay(located, _Place(located.offset, timeline, base))
        return found

    def _replay(self, located: Located, place: _Place) -> None:
        record = located.record
        if isinstance(record, r.RemoveTopicRecord):
            _remove_topic(self.catalogue, record, place, self.topics, self.configs)
        self.catalogue.apply_all([located])
        if isinstance(record, _OF_BROKERS):
            _put_broker(self.catalogue, _broker_id(record), place, self.brokers)
        elif isinstance(record, r.TopicRecord):
            self.topics.put(record.topic_id, {"topic_id": uuid_text(record.topic_id), "topic": record.name}, place)
        elif isinstance(record, r.ConfigRecord):
            _put_config(record, place, self.configs)

    def tables(self, cluster_id: str, is_secret: IsSecret = no_secrets) -> dict[str, pa.Table]:
        """The tables of brokers, topics and configs, each in the order in which versions begin.

        A config that may be a secret has all its versions, and `(hidden)` in each.
        """
        for row in self.configs.rows:
            row["value"] = shown_value(row["resource_type"], row["name"], row["value"], is_secret)
        return {
            "broker_versions": _table(self.brokers, BROKER_VERSIONS, cluster_id),
            "topic_versions": _table(self.topics, TOPIC_VERSIONS, cluster_id),
            "config_versions": _table(self.configs, CONFIG_VERSIONS, cluster_id),
        }

    def state(self) -> list[RareRecord]:
        """The records of the state, as a base's; the time of each is that from when on its version holds, or 0."""
        records = (*self.catalogue.topics.values(), *self.catalogue.entries())
        return [
            RareRecord(BASE_OFFSET + at, self._since(record), record, SCHEMA_OF_CLASS[type(record)].versions.last)
            for at, record in enumerate(records)
        ]

    def _since(self, record: r.Record) -> int:
        if isinstance(record, r.TopicRecord):
            return self.topics.since(record.topic_id)
        if isinstance(record, r.RegisterBrokerRecord):
            return self.brokers.since(record.broker_id)
        return self.configs.since(_config_key(record)) if isinstance(record, r.ConfigRecord) else 0


def _table(versions: _Versions, schema: pa.Schema, cluster_id: str) -> pa.Table:
    for row in versions.rows:
        row["cluster_id"] = cluster_id
    return pa.Table.from_pylist(versions.rows, schema=schema)


def _broker_id(record: Any) -> int:
    found: int = record.id if isinstance(record, (r.FenceBrokerRecord, r.UnfenceBrokerRecord)) else record.broker_id
    return found


def _put_broker(catalogue: Catalogue, broker_id: int, place: _Place, versions: _Versions) -> None:
    broker = catalogue.brokers.get(broker_id)
    if broker is None:
        versions.remove(broker_id, place)
        return
    state = {
        "broker_id": broker_id,
        "broker_epoch": broker.broker_epoch,
        "incarnation_id": uuid_text(broker.incarnation_id),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "log_dirs": [uuid_text(directory) for directory in broker.log_dirs],
        "end_points": [
            {"name": e.name, "host": e.host, "port": e.port, "security_protocol": e.security_protocol}
            for e in broker.end_points
        ],
        "features": [
            {
                "name": f.name,
                "min_supported_version": f.min_supported_version,
                "max_supported_version": f.max_supported_version,
            }
            for f in broker.features
        ],
    }
    versions.put(broker_id, state, place)


def _config_key(record: r.ConfigRecord) -> tuple[int, str, str]:
    return record.resource_type, record.resource_name, record.name


def _put_config(record: r.ConfigRecord, place: _Place, versions: _Versions) -> None:
    if record.value is None:
        versions.remove(_config_key(record), place)
        return
    state = {
        "resource_type": record.resource_type,
        "resource": record.resource_name,
        "name": record.name,
        "value": record.value,
    }
    versions.put(_config_key(record), state, place)


def _remove_topic(
    catalogue: Catalogue, record: r.RemoveTopicRecord, place: _Place, topics: _Versions, configs: _Versions
) -> None:
    """A topic's configs go with it, without records of their own."""
    topic = catalogue.topics.get(record.topic_id)
    if topic is None:
        return  # refused where it is applied
    topics.remove(record.topic_id, place)
    for config in _configs_of(catalogue, topic.name):
        configs.remove(_config_key(config), place)


def _configs_of(catalogue: Catalogue, topic: str) -> Iterator[r.ConfigRecord]:
    yield from catalogue.configs.get((_TOPIC_RESOURCE, topic), {}).values()
