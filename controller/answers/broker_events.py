"""States after brokers have gone, as the controller would decide them: nothing is sent, nobody is asked.

Each event is what a broker's heartbeats, or their absence, bring the active controller to write, replayed at once. No
rule about partitions stands here: an answer that had rules of its own would be wrong where they differ.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from quorate.controller.brokers.fencing import (
    apply_fencing,
    apply_heartbeat,
    decide_broker_heartbeat,
    decide_fence_stale_broker,
)
from quorate.controller.brokers.heartbeats import BrokerControlState, BrokerHeartbeats
from quorate.controller.brokers.session_order import Session
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.metadata_log.batches.builder import item_count
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.cluster import BrokerRegistration

#: Milliseconds on a clock that nobody reads: sessions begin here.
_NOW_MS: Final = 0.0
#: The first heartbeat takes the broker's leaderships away, the second one lets it go.
_HEARTBEATS_TO_STOP: Final = 2


def registered_broker(image: MetadataImage, broker_id: int) -> BrokerRegistration:
    """A broker's registration.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED.
    """
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker_id} is registered")
    return broker


def stopped(image: MetadataImage, config: ControllerConfig, broker_id: int) -> MetadataImage:
    """The state after a broker was shut down in order: it says so, is relieved of what it leads, and leaves.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED.
    """
    broker = registered_broker(image, broker_id)
    # Without sessions nobody is waited for: each broker that stays will have applied what this one's shutdown wrote.
    heartbeats = BrokerHeartbeats.of_image(image, config.session_timeout_ms, _NOW_MS, starts_sessions=False)
    for _ in range(_HEARTBEATS_TO_STOP):
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            current_metadata_offset=image.provenance.last_contained_offset,
            want_shut_down=True,
        )
        decision = decide_broker_heartbeat(image, config, heartbeats, request, _NOW_MS)
        image = written(image, decision)
        apply_heartbeat(heartbeats, request, decision, image.provenance.end_offset)
        if decision.next_state is BrokerControlState.SHUTDOWN_NOW:
            break
    return image


def crashed(image: MetadataImage, config: ControllerConfig, broker_ids: Collection[int]) -> MetadataImage:
    """The state after brokers were not heard of for longer than their sessions, all from the same moment on.

    They are fenced in the controller's order. One that is fenced already has no session, and nothing to lose.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED.
    """
    silent = {registered_broker(image, broker_id).id for broker_id in broker_ids}
    heartbeats = BrokerHeartbeats.of_image(image, config.session_timeout_ms, _NOW_MS)
    later_ms = _NOW_MS + config.session_timeout_ms + 1
    for broker in image.cluster.brokers.values():
        if broker.id not in silent and not broker.is_fenced:
            heartbeats.note_contact(Session(broker.id, broker.epoch), later_ms)
    while True:
        decision = decide_fence_stale_broker(image, config, heartbeats, later_ms)
        if decision.reply is None:
            return image
        image = written(image, decision)
        apply_fencing(heartbeats, decision)


def written(image: MetadataImage, decision: Decision[object]) -> MetadataImage:
    """The state after a decision, slice by slice where it is a pass, in the epoch and at the time of the state."""
    state, covers = ReplayState(image), image.provenance
    for part in decision.slices or [lambda _: decision.records]:
        items = [item for item in part(state.stable) if item_count(item)]
        if items:
            state = state.replay_items(items, state.end_offset, covers.epoch, covers.log_time_ms)
    return state.stable
