"""Operations of scenarios about brokers: the request in the controller's words, its answer in the vectors'."""

from __future__ import annotations

from typing import Any, Final

from quorate.controller.brokers.fencing import apply_fencing, decide_fence_stale_broker
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    SupportedFeature,
    UnregisterBrokerRequest,
)
from quorate.scripts.conformance_runner.kinds.stage import ScenarioStage
from quorate.scripts.conformance_runner.record_form import Form

#: Bounds waits that do not happen here.
TIMEOUT_MS: Final = 10_000.0
#: What a broker of 4.3.1 supports, metadata.version 31 being its unstable one.
_RANGES: Final = {
    "metadata.version": (7, 31),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


async def advance_time(stage: ScenarioStage, op: Form) -> None:
    """Nothing but the clock moves."""
    stage.clock.now_ms += op["ms"]


async def register_broker(stage: ScenarioStage, op: Form) -> Form:
    """``features`` lists only what differs from the full ranges; null is not listed at all."""
    ranges = {name: range_ for name, range_ in (_RANGES | op.get("features", {})).items() if range_ is not None}
    request = BrokerRegistrationRequest(
        broker_id=op["broker"],
        cluster_id=op["cluster_id"],
        incarnation_id=stage.names.id(op["incarnation"]),
        features=[
            SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in ranges.items()
        ],
        rack=op["rack"],
        log_dirs=[stage.names.id(directory) for directory in op["log_dirs"]],
        previous_broker_epoch=op["previous_broker_epoch"],
        api_version=op["api_version"],
    )
    return {"broker_epoch": (await stage.operations.register_broker(request, TIMEOUT_MS)).broker_epoch}


async def broker_heartbeat(stage: ScenarioStage, op: Form) -> Form:
    """The answer has the controller's field names."""
    request = BrokerHeartbeatRequest(
        broker_id=op["broker"],
        broker_epoch=op["broker_epoch"],
        current_metadata_offset=op["current_metadata_offset"],
        want_fence=op["want_fence"],
        want_shut_down=op["want_shut_down"],
        offline_log_dirs=[stage.names.id(directory) for directory in op.get("offline_log_dirs", ())],
    )
    # Kafka's response promises no session.
    return (await stage.operations.broker_heartbeat(request, TIMEOUT_MS)).model_dump(exclude={"session_ms"})


async def unregister_broker(stage: ScenarioStage, op: Form) -> None:
    """Nothing is answered."""
    await stage.operations.unregister_broker(UnregisterBrokerRequest(broker_id=op["broker"]), TIMEOUT_MS)


async def fence_stale_broker(stage: ScenarioStage, _: Form) -> Any:
    """Whether a session had ended: then the next look is at once."""
    ended = await stage.controller.append_write_event(
        "fence_stale_broker",
        lambda c: decide_fence_stale_broker(c.image, stage.config, stage.role.sessions, c.now_ms),
        TIMEOUT_MS,
        lambda decision, _: apply_fencing(stage.role.sessions, decision),
    )
    return ended is not None
