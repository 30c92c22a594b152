"""May these controllers be stopped? By what the quorum says of its voters; no log tells it."""

from __future__ import annotations

from collections.abc import Collection

from quorate.controller.api.answers.stop_models import CanStopReason, QuorumMargin, StopReasonCode
from quorate.controller.api.resources import QuorumReply
from quorate.controller.reads.voters import fit_voters, is_behind, majority_of
from quorate.metadata_log.errors import ApiError, ErrorCode


def quorum_without(quorum: QuorumReply, stopping: Collection[int]) -> QuorumMargin:
    """The margin that is left.

    Raises:
        ApiError: INVALID_REQUEST, one is no voter, or the state is an old one: no log says how the quorum was.
    """
    if quorum.is_past:
        message = "no log or checkpoint says how the controllers were: ask running ones about controllers"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
    known = [voter.node_id for voter in quorum.voters]
    for node_id in stopping:
        if node_id not in known:
            voters = ", ".join(map(str, known))
            raise ApiError(ErrorCode.INVALID_REQUEST, f"no controller {node_id} is a voter: these are {voters}")
    majority, fit = majority_of(quorum.voters), fit_voters(quorum.voters)
    left = [node_id for node_id in fit if node_id not in stopping]
    return QuorumMargin(
        voters=len(known),
        majority=majority,
        left=left,
        may_fail_now=len(fit) - majority,
        may_fail_then=len(left) - majority,
        moves_leadership=quorum.active_id in stopping,
    )


def reasons_against(quorum: QuorumReply, stopping: Collection[int], margin: QuorumMargin) -> list[CanStopReason]:
    """None where a majority goes on. ``margin``: that of ``quorum_without``."""
    if quorum.active_id is None or any(voter.role == "unknown" for voter in quorum.voters):
        return [_reason("QUORUM_NOT_KNOWN", "no active controller says which voters follow it", len(quorum.voters))]
    if margin.may_fail_then >= 0:
        return []
    named = ", ".join(map(str, margin.left)) or "none"
    needed = f"{margin.majority} of {margin.voters} must run, and these would be left: {named}"
    behind = [voter for voter in quorum.voters if is_behind(voter) and voter.node_id not in stopping]
    if len(margin.left) + len(behind) >= margin.majority:
        lags = ", ".join(f"{voter.node_id} ({voter.lag_records:,} records)" for voter in behind)
        message = f"nothing could be changed until these have caught up: {lags}; {needed}"
        return [_reason("QUORUM_LOST_UNTIL_CAUGHT_UP", message, len(behind))]
    return [_reason("QUORUM_LOST", f"nothing could be changed any more: {needed}", -margin.may_fail_then)]


def reasons_without_active(quorum: QuorumReply) -> list[CanStopReason]:
    """The reason against stopping any broker while nobody decides: what it leads would stay without a leader.

    There is none in an old state, of which no log says how the quorum was.
    """
    if quorum.is_past or quorum.active_id is not None:
        return []
    message = "no active controller is known: nobody would elect other leaders for what these lead"
    return [_reason("QUORUM_NOT_KNOWN", message, len(quorum.voters))]


def _reason(code: StopReasonCode, message: str, count: int) -> CanStopReason:
    return CanStopReason(code=code, message=message, count=count, topics=[])
