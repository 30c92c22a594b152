"""The whole state of a scenario's cluster in the form of the vectors."""

from __future__ import annotations

from typing import Any

from quorate.controller.partitions.view import allows_unclean_election, effective_min_isr
from quorate.scripts.conformance_runner.kinds.stage import ScenarioStage
from quorate.scripts.conformance_runner.record_form import RESOURCE_NAMES, Form, partition_form
from quorate.snapshots.image.image_parts import Topic


def state_form(stage: ScenarioStage) -> Form:
    """The committed state, and the soft state."""
    image = stage.controller.stable
    table = image.partitions
    topics = dict(image.topics.by_id.items())

    def partitions(rows: Any, name_of: Any) -> list[str]:
        found = [(topics[table.topic_id(row)], table.partition_id(row)) for row in rows.tolist()]
        return sorted(f"{name_of(topic)}-{number}" for topic, number in found)

    return {
        "next_offset": stage.log.log_end_offset,
        "time_ms": stage.clock.now_ms,
        "brokers": _brokers(stage),
        "topics": {topic.name: _topic(stage, topic) for topic in topics.values()},
        "configs": {
            f"{RESOURCE_NAMES[kind]}:{name}": dict(configs) for (kind, name), configs in image.configs.resources.items()
        },
        "imbalanced_partitions": partitions(
            table.rows_not_led_by_preferred(), lambda topic: stage.names.name(topic.id)
        ),
        "reassigning_partitions": partitions(table.rows_reassigning(), lambda topic: topic.name),
    }


def _brokers(stage: ScenarioStage) -> Form:
    sessions, name = stage.role.sessions, stage.names.name
    brokers = {}
    for broker in stage.controller.stable.cluster.brokers.values():
        offset = sessions.shutdown_offset(broker.id)
        brokers[str(broker.id)] = {
            "broker_epoch": broker.epoch,
            "incarnation": name(broker.incarnation_id),
            "fenced": broker.is_fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "rack": broker.rack,
            "log_dirs": [name(directory) for directory in broker.directories],
            "controlled_shutdown_offset": None if offset < 0 else offset,
        }
    return brokers


def _topic(stage: ScenarioStage, topic: Topic) -> Form:
    image, config = stage.controller.stable, stage.config
    partitions = [partition for _, partition in image.partitions.partitions_of(topic.id)]
    return {
        "topic_id": stage.names.name(topic.id),
        "partitions": [partition_form(partition, stage.names) for partition in partitions],
        "effective_min_isr": effective_min_isr(image, config, topic.name, len(partitions[0].replicas)),
        "unclean_election": allows_unclean_election(image, config, topic.name),
    }
