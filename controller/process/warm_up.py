"""A rehearsal of common writes on controllers of its own, so that the first after a failover find all ready.

What a process uses for the first time it must first load or make: codecs made from schemas, validators, modules that
libraries import on first use. Left to the first decisions of a new active controller, that took longer than the
election before it; left to the first answers of each kind, all others waited while one made its models. Nothing here
touches the process's real controller, log or clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import BaseModel

from quorate.controller.api.models import HttpModel
from quorate.controller.engine.environment import OsRandom, new_uuid
from quorate.controller.engine.event_queue import Scheduler
from quorate.controller.engine.faults import FaultHandler
from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.operations.operations import Operations
from quorate.controller.process.composition import Machine, compose
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    SupportedFeature,
)
from quorate.controller.protocol.types import Message
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import FeatureLevelRecord, VersionedRecord

_LEVEL: Final = 30
_TIMEOUT_MS: Final = 60_000.0
_ACTIVE, _STANDBY = 0, 1
_EPOCH: Final = 1


async def warm_up(scheduler: Scheduler, faults: FaultHandler) -> None:
    """Register two brokers, make a topic, fence a broker and delete the topic; a turn of the loop for each.

    A refusal is reported as a fault: it would mean that this build cannot make the simplest of changes.
    """
    log = LogInMemory(scheduler)
    log.leader_id = _ACTIVE
    parts = default_parts(_ACTIVE, "rehearsal")
    role = replace(parts.role, idle_noop_interval_ms=0)
    bootstrap = (VersionedRecord(FeatureLevelRecord("metadata.version", _LEVEL), 0),)
    machine = Machine(scheduler, faults, OsRandom(), new_uuid)
    active, standby = (
        compose(config, role, parts.limits, bootstrap, log, machine)
        for config in (parts.config, replace(parts.config, node_id=_STANDBY))
    )
    log.controllers = (active.controller, standby.controller)
    try:
        active.controller.on_leader_change(_ACTIVE, _EPOCH)
        await _rehearse(active.operations)
    except Exception as error:  # noqa: BLE001 - a rehearsal must not stop the process it is for
        faults.fault("rehearsal of common writes", error)
    finally:
        for controller in log.controllers:
            controller.close()


def make_models() -> Iterator[type[BaseModel]]:
    """Make what checks and writes requests and answers: one model after the other, each milliseconds of work at most.

    A model that is made already is given again.
    """
    for model in _models_below(HttpModel, Message):
        model.model_rebuild()
        yield model


async def _rehearse(operations: Operations) -> None:
    epochs = []
    for broker_id in (0, 1):
        registered = await operations.register_broker(_registration(broker_id), _TIMEOUT_MS)
        epochs.append(registered.broker_epoch)
        await operations.broker_heartbeat(_heartbeat(broker_id, registered.broker_epoch), _TIMEOUT_MS)
    topic = CreatableTopic(name="rehearsal", num_partitions=2, replication_factor=2)
    created = await operations.create_topics(CreateTopicsRequest(topics=[topic]), _TIMEOUT_MS)
    fenced = await operations.broker_heartbeat(_heartbeat(0, epochs[0], want_fence=True), _TIMEOUT_MS)
    topic_ids = [result.topic_id for result in created.topics if result.topic_id is not None]
    deleted = await operations.delete_topics(DeleteTopicsRequest(topic_ids=topic_ids), _TIMEOUT_MS)
    done = [result.error_code for result in deleted.responses]
    if done != [ErrorCode.NONE] or not fenced.is_fenced:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"created {created}, fenced {fenced}, deleted {deleted}")


def _registration(broker_id: int) -> BrokerRegistrationRequest:
    level = SupportedFeature(name="metadata.version", min_supported_version=_LEVEL, max_supported_version=_LEVEL)
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="rehearsal",
        incarnation_id=new_uuid(),
        log_dirs=[new_uuid()],
        features=[level],
    )


def _heartbeat(broker_id: int, epoch: int, *, want_fence: bool = False) -> BrokerHeartbeatRequest:
    # An offset above all others: caught up.
    return BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=epoch, want_fence=want_fence
    )


def _models_below(*bases: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Every model that is loaded and is one of these; a model that is two is given twice."""
    for base in bases:
        for model in base.__subclasses__():
            yield model
            yield from _models_below(model)
