"""Heartbeats of brokers that stay what they are: nearly all there are, thousands a second.

What such a heartbeat is answered is what ``brokers.fencing.decide_broker_heartbeat`` would say, found without asking
what a change would write.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from quorate.controller.brokers.heartbeats import BrokerControlState, BrokerHeartbeats
from quorate.controller.brokers.session_order import Session
from quorate.controller.protocol import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorate.snapshots.image.image import MetadataImage


class SteadyBroker(NamedTuple):
    """The part of a broker's heartbeats that stays the same for as long as it wants nothing new."""

    session: Session
    is_fenced: bool


#: By whether it is fenced.
_STATES: Final = BrokerControlState.UNFENCED, BrokerControlState.FENCED
#: Promises of the last quarter of a second or so, in all their forms.
_REPLIES_MAX: Final = 256


@lru_cache(maxsize=_REPLIES_MAX)
def _reply(is_fenced: bool, is_caught_up: bool, session_ms: int) -> BrokerHeartbeatResponse:
    """The same objects for as long as they are asked for, so that their bytes are remembered."""
    return BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=is_fenced,
        in_controlled_shutdown=False,
        should_shut_down=False,
        session_ms=session_ms,
    )


def standing_or_none(request: BrokerHeartbeatRequest) -> SteadyBroker | None:
    """The broker as its heartbeat describes it; None where it wants to leave, or says something of its directories."""
    if request.want_shut_down or request.offline_log_dirs or request.cordoned_log_dirs is not None:
        return None
    return SteadyBroker(Session(request.broker_id, request.broker_epoch), request.want_fence)


def steady_heartbeat(
    image: MetadataImage, heartbeats: BrokerHeartbeats, standing: SteadyBroker, metadata_offset: int, now_ms: float
) -> BrokerHeartbeatResponse | None:
    """The answer to a registered broker that stays what it is; None for any other.

    Args:
        metadata_offset: the last offset that it has applied.
    """
    (broker_id, broker_epoch), is_fenced = standing
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch or heartbeats.state(broker_id) is not _STATES[is_fenced]:
        return None
    is_caught_up = metadata_offset >= heartbeats.registration_offset(broker_id)
    promised_ms = 0 if is_fenced else heartbeats.promised_ms(broker_id, metadata_offset, now_ms)
    return _reply(is_fenced, is_caught_up, promised_ms)
