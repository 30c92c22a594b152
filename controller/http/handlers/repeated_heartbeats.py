"""A broker that says what it said before: its heartbeats are known by their bytes, all but how far it is."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.api.content import pack
from quorate.controller.brokers.steady_heartbeats import standing_or_none
from quorate.controller.http.packed_forms import PackedForm
from quorate.controller.http.ports import Node
from quorate.controller.protocol import BrokerHeartbeatRequest, BrokerHeartbeatResponse

#: What changes with every heartbeat, in the order of the body: offsets in the log, which never stands still.
_APPLIED = "current_metadata_offset"
_UNDELETED = "metadata_offset"


def repeated_heartbeat(
    node: Node, first: BrokerHeartbeatRequest, data: bytes
) -> Callable[[bytes], BrokerHeartbeatResponse | None] | None:
    """See ``Route.repeated``. ``first`` wants nothing new, or there is nothing to repeat."""
    standing = standing_or_none(first)
    has_replicas_left = first.undeleted is not None and first.undeleted.topics
    # As our own brokers pack it, there is no text in it but the keys.
    if standing is None or has_replicas_left or pack(first) != data:
        return None
    form = PackedForm.of(data, (_APPLIED,) if first.undeleted is None else (_APPLIED, _UNDELETED))
    if form is None:
        return None
    broker_id = first.broker_id
    controller, reports = node.controller, node.broker_reports
    applied_offset_in, answer_at_once = form.first_number, node.operations.repeated_heartbeat

    def answer(data: bytes) -> BrokerHeartbeatResponse | None:
        applied_offset = applied_offset_in(data)
        if applied_offset is None:
            return None
        reply = answer_at_once(standing, applied_offset)
        if reply is not None:
            reports.note(controller.epoch, broker_id, applied_offset)
        return reply

    return answer
