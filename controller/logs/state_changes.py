"""Changes of the cluster between two states, as a bounded number of lines for people and for grep.

Pure. What is many is counted and the first few are named, so that a lost broker with a quarter of a million partitions
is as few lines as one with three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.difference.delta import KeyChanges, MetadataDelta
from quorate.snapshots.difference.image_difference import RESOURCE_KINDS
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration

#: Of one kind, named one by one: topics, partitions, resources.
NAMED_MAX: Final = 5
#: Brokers of one kind that have a line each; of more the first are told, and how many others there are.
BROKERS_MAX: Final = 20

Level = Literal["info", "warning"]
Fields = dict[str, Any]


class StateChange(NamedTuple):
    """One line."""

    #: ``what.happened``: the word to look for.
    event: str
    fields: Fields
    #: ``warning`` where data may be lost, or cannot be reached.
    level: Level = "info"


def state_changes(
    old: MetadataImage, new: MetadataImage, not_heard_ms: Callable[[int], float | None]
) -> Iterator[StateChange]:
    """The lines about all that differs but partitions (``partition_changes``).

    Args:
        not_heard_ms: how long ago a broker was last heard of; None where nobody knows.
    """
    delta = MetadataDelta(old, new)
    yield from _brokers(delta, not_heard_ms)
    yield from _topics(delta)
    for name in sorted(delta.features.updated | delta.features.removed):
        levels = {"from_level": old.features.levels.get(name, 0), "to_level": new.features.levels.get(name, 0)}
        yield StateChange("feature.changed", {"feature": name, **levels})
    if delta.is_kraft_changed:
        voters = [] if new.kraft.voters is None else [voter.voter_id for voter in new.kraft.voters.voters]
        yield StateChange("voters.changed", {"kraft_version": new.kraft.version, "voters": voters})
    yield from _counted("controllers.registered", delta.controllers, str)
    yield from _counted("configs.changed", delta.configs, _resource)
    yield from _counted("labels.changed", delta.labels, str)
    yield from _counted("quotas.changed", delta.client_quotas, _entity)
    yield from _counted("acls.changed", delta.acls, uuid_text)
    yield from _counted("users.changed", delta.scram, lambda credential: credential[0])
    yield from _counted("tokens.changed", delta.delegation_tokens, str)


def named(names: Iterable[str], count: int) -> Fields:
    """Their number, and the first few. ``names``: at least ``NAMED_MAX`` of them, or all."""
    return {"count": count, "first": list(islice(names, NAMED_MAX))}


def _counted(event: str, changes: KeyChanges[Any], name: Callable[[Any], str]) -> Iterator[StateChange]:
    """Keys of a part that are new, have another value, or are gone."""
    keys = changes.updated | changes.removed
    if keys:
        yield StateChange(event, {**named(sorted(map(name, keys)), len(keys)), "removed": len(changes.removed)})


def _resource(resource: tuple[int, str]) -> str:
    kind, name = resource
    return f"{RESOURCE_KINDS.get(kind, str(kind))}/{name}"


def _entity(entity: Iterable[Any]) -> str:
    return ", ".join(f"{part.entity_type}/{part.entity_name or ''}" for part in entity)


# --- topics ------------------------------------------------------------------------------------------


def _topics(delta: MetadataDelta) -> Iterator[StateChange]:
    for event, image, ids in (
        ("topics.created", delta.new, delta.topics.updated),
        ("topics.deleted", delta.old, delta.topics.removed),
    ):
        if ids:
            topics = sorted(image.topics.by_id[topic_id].name for topic_id in ids)
            partitions = sum(len(image.partitions.rows_of(topic_id)) for topic_id in ids)
            yield StateChange(event, {**named(topics, len(ids)), "partitions": partitions})


# --- brokers -----------------------------------------------------------------------------------------


def _brokers(delta: MetadataDelta, not_heard_ms: Callable[[int], float | None]) -> Iterator[StateChange]:
    lines: dict[str, list[StateChange]] = {}
    for broker_id in sorted(delta.brokers.updated | delta.brokers.removed):
        old, new = delta.old.cluster.brokers.get(broker_id), delta.new.cluster.brokers.get(broker_id)
        for line in _broker(old, new, not_heard_ms):
            lines.setdefault(line.event, []).append(line)
    for event, of_event in lines.items():
        yield from of_event[:BROKERS_MAX]
        others = [line.fields["broker"] for line in of_event[BROKERS_MAX:]]
        if others:
            yield StateChange(event, {"others": len(others), "first": others[:NAMED_MAX]}, of_event[0].level)


def _broker(
    old: BrokerRegistration | None, new: BrokerRegistration | None, not_heard_ms: Callable[[int], float | None]
) -> Iterator[StateChange]:
    if new is None:
        assert old is not None
        yield StateChange(
            "broker.left", {"broker": old.id, "broker_epoch": old.epoch, "was_fenced": old.is_fenced}, "warning"
        )
        return
    who: Fields = {"broker": new.id, "broker_epoch": new.epoch}
    was_fenced = True
    if old is None or old.epoch != new.epoch:
        is_same = old is not None and old.incarnation_id == new.incarnation_id
        more = {"incarnation": uuid_text(new.incarnation_id), "rack": new.rack, "directories": len(new.directories)}
        yield StateChange("broker.registered", {**who, **more, "is_known_incarnation": is_same})
    if old is not None:
        was_fenced = old.is_fenced
        if old.incarnation_id == new.incarnation_id:
            yield from _directories(who, old, new)
    if new.is_fenced and not was_fenced:
        yield StateChange("broker.fenced", {**who, "not_heard_ms": _rounded(not_heard_ms(new.id))}, "warning")
    elif was_fenced and not new.is_fenced:
        yield StateChange("broker.unfenced", who)
    if new.in_controlled_shutdown and not (old is not None and old.in_controlled_shutdown):
        yield StateChange("broker.shutting_down", who)


def _directories(who: Fields, old: BrokerRegistration, new: BrokerRegistration) -> Iterator[StateChange]:
    """A broker says in its heartbeats which of its directories failed or take no new partitions."""
    failed = [uuid_text(uuid) for uuid in old.directories if uuid not in new.directories]
    if failed:
        fields = {**who, **named(failed, len(failed)), "left": len(new.directories)}
        yield StateChange("broker.directories_failed", fields, "warning")
    if old.cordoned_directories != new.cordoned_directories:
        cordoned = [uuid_text(uuid) for uuid in new.cordoned_directories]
        yield StateChange("broker.directories_cordoned", {**who, **named(cordoned, len(cordoned))})


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
