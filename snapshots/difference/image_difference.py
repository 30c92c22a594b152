"""The difference of two images, for people and programs: of one log at two offsets, or of two clusters.

Parts, map buckets and pages that both images share are skipped. ``snapshots.difference.delta`` is for those who act on
a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.hidden_values import IsSecret
from quorate.metadata_log.records.records import AccessControlEntryRecord, EntityData
from quorate.snapshots.difference.difference_entries import Fields, PartDifference, Secret, part_difference
from quorate.snapshots.difference.partition_difference import partition_difference
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    KRaftImage,
)
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.pages import NO_PARTITION
from quorate.snapshots.table.table_difference import TableDifference, table_difference
from quorate.snapshots.views.as_json import acl_json, broker_json, controller_json, token_json, voter_json
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS, ZK_MIGRATION_STATES, name_of

K = TypeVar("K")
V = TypeVar("V")
#: Entries by name.
_Entries = Mapping[str, Fields]

RESOURCE_KINDS: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    BROKER_LOGGER_RESOURCE: "broker-logger",
    CLIENT_METRICS_RESOURCE: "client-metrics",
    GROUP_RESOURCE: "group",
}


def image_difference(
    old: MetadataImage,
    new: MetadataImage,
    is_secret: IsSecret,
    *,
    by_name: bool = False,
    without_epochs: bool = False,
) -> list[PartDifference]:
    """Compare two states, part by part; each part is there, also where nothing differs.

    Args:
        is_secret: such a config is compared, and its value not shown; nor is what authenticates a SCRAM user.
        by_name: the images are of two clusters: ids that each cluster makes up for itself (of topics, directories,
            incarnations, ACLs, producers; brokers' epochs) are not compared, and topics found by their names.
        without_epochs: those of brokers, partitions and their leaders are not compared: they count changes, so a
            change that was taken back has not left them as they were.
    """
    brokers = partial(_brokers, by_name, without_epochs)
    of_tables = None if by_name else table_difference(old.partitions, new.partitions)
    return [
        part_difference("features", *map(_features, (old, new))),
        part_difference("voters", *(_voters(image.kraft, by_name=by_name) for image in (old, new))),
        _differing("controllers", old.cluster.controllers, new.cluster.controllers, partial(_controllers, by_name)),
        _differing("brokers", old.cluster.brokers, new.cluster.brokers, brokers),
        _topics(old, new, of_tables),
        partition_difference(old, new, of_tables, without_epochs=without_epochs),
        _differing("configs", old.configs.resources, new.configs.resources, partial(_configs, is_secret)),
        _differing("labels", old.labels.resources, new.labels.resources, _labels),
        _differing("client_quotas", old.client_quotas.entities, new.client_quotas.entities, _quotas),
        part_difference("producer_ids", *({} if by_name else _producer_ids(image) for image in (old, new))),
        _acls(old, new, by_name=by_name),
        _differing("scram", old.scram.credentials, new.scram.credentials, _scram),
        _differing("delegation_tokens", old.delegation_tokens.tokens, new.delegation_tokens.tokens, _tokens),
    ]


def _differing(
    part: str, old: PersistentMap[K, V], new: PersistentMap[K, V], entries: Callable[[Mapping[K, V]], _Entries]
) -> PartDifference:
    """Compare two maps, looking only at what is not shared."""
    updated, removed = new.changes_since(old)
    before = {key: old[key] for key in (*updated, *removed) if key in old}
    return part_difference(part, entries(before), entries({key: new[key] for key in updated}))


def _features(image: MetadataImage) -> _Entries:
    levels = {**image.features.levels, "kraft.version": image.kraft.version}
    entries: dict[str, Fields] = {name: {"level": level} for name, level in levels.items()}
    return {**entries, "zk.migration": {"state": name_of(ZK_MIGRATION_STATES, image.features.zk_migration_state)}}


def _voters(kraft: KRaftImage, *, by_name: bool) -> _Entries:
    voters = () if kraft.voters is None else kraft.voters.voters
    made_up = ("id", "directory_id") if by_name else ("id",)
    return {str(voter.voter_id): _without(voter_json(voter), *made_up) for voter in voters}


def _controllers(by_name: bool, controllers: Mapping[int, Any]) -> _Entries:
    made_up = ("id", "incarnation_id") if by_name else ("id",)
    return {str(id_): _without(controller_json(controller), *made_up) for id_, controller in controllers.items()}


def _brokers(by_name: bool, without_epochs: bool, brokers: Mapping[int, Any]) -> _Entries:
    made_up = ("id", "epoch", "incarnation_id", "log_dirs", "cordoned_log_dirs") if by_name else ("id",)
    epochs = ("epoch",) if without_epochs else ()
    return {str(id_): _without(broker_json(broker), *made_up, *epochs) for id_, broker in brokers.items()}


def _without(row: dict[str, Any], *names: str) -> Fields:
    return {name: value for name, value in row.items() if name not in names}


# --- topics -------------------------------------------------------------------------------------------


def _topics(old: MetadataImage, new: MetadataImage, of_tables: TableDifference | None) -> PartDifference:
    """``of_tables``: None: topics of one name are one."""
    by_name = of_tables is None
    if of_tables is None:
        names = {*old.topics.by_name, *new.topics.by_name}
    else:
        names = set(_topics_that_may_differ(old, new, of_tables))
    return part_difference("topics", *(_topic_entries(image, names, by_name=by_name) for image in (old, new)))


def _topics_that_may_differ(old: MetadataImage, new: MetadataImage, found: TableDifference) -> Iterator[str]:
    """Names of topics that are there once only, or under another id, or with partitions that the other has not."""
    updated, removed = new.topics.by_id.changes_since(old.topics.by_id)
    for image, topics in (
        (new, updated | new.partitions.topics_in(found.rows[found.old_rows < 0])),
        (old, removed | old.partitions.topics_in(found.removed_rows)),
    ):
        yield from (image.topics.by_id[topic].name for topic in topics)


def _topic_entries(image: MetadataImage, names: set[str], *, by_name: bool) -> _Entries:
    topics = (topic for name in names if (topic := image.topics.by_name.get(name)) is not None)
    made_up = ("id",) if by_name else ()
    return {
        topic.name: _without({"id": uuid_text(topic.id), "partitions": _partition_count(image, topic.id)}, *made_up)
        for topic in topics
    }


def _partition_count(image: MetadataImage, topic: Uuid) -> int:
    rows = image.partitions.rows_of(topic)
    held = image.partitions.gather_partition_ids(np.arange(rows.start, rows.stop)) != NO_PARTITION
    return int(np.count_nonzero(held))


# --- the rest -----------------------------------------------------------------------------------------


def _configs(is_secret: IsSecret, resources: Mapping[tuple[int, str], Mapping[str, str]]) -> _Entries:
    return {
        f"{RESOURCE_KINDS.get(type_, str(type_))}/{resource}": {
            name: Secret(value) if is_secret(type_, name) else value for name, value in sorted(configs.items())
        }
        for (type_, resource), configs in resources.items()
    }


def _labels(resources: Mapping[str, Mapping[str, str]]) -> _Entries:
    return {resource: dict(sorted(labels.items())) for resource, labels in resources.items()}


def _quotas(entities: Mapping[tuple[EntityData, ...], Mapping[str, float]]) -> _Entries:
    return {
        " ".join(f"{part.entity_type}/{part.entity_name or ''}" for part in entity): dict(sorted(values.items()))
        for entity, values in entities.items()
    }


def _producer_ids(image: MetadataImage) -> _Entries:
    return {"next": {"producer_id": image.producer_ids.next_producer_id}}


def _acls(old: MetadataImage, new: MetadataImage, *, by_name: bool) -> PartDifference:
    if not by_name:
        return _differing("acls", old.acls.entries, new.acls.entries, partial(_acl_entries, ()))
    return part_difference("acls", *(_acl_entries(("id",), image.acls.entries) for image in (old, new)))


def _acl_entries(made_up: tuple[str, ...], entries: Mapping[Uuid, AccessControlEntryRecord]) -> _Entries:
    """By what they say; their ids tell apart those that say the same."""
    named: dict[str, Fields] = {}
    for _, entry in sorted(entries.items()):
        row = acl_json(entry)
        name = (
            f"{row['permission']} {row['principal']} from {row['host']} to {row['operation']} "
            f"{row['resource_type']} {row['pattern_type']} {row['resource_name']}"
        )
        while name in named:
            name += " (again)"
        named[name] = _without(row, *made_up)
    return named


def _scram(credentials: Mapping[tuple[str, int], Any]) -> _Entries:
    return {
        f"{user}/{name_of(SCRAM_MECHANISMS, mechanism)}": {
            "iterations": credential.iterations,
            "credential": Secret((credential.salt, credential.stored_key, credential.server_key)),
        }
        for (user, mechanism), credential in credentials.items()
    }


def _tokens(tokens: Mapping[str, Any]) -> _Entries:
    return {token_id: token_json(token) for token_id, token in tokens.items()}
