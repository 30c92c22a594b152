"""Errors as an HTTP client sees them: a status, Kafka's name and number, a sentence, and whether to send it again.

``retriable`` says what may be done with the *same* request:
``yes``: nothing was changed, and it may succeed later; ``no``: it would be refused again;
``after-reading``: it may have been carried out, so read the state before repeating it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from quorate.controller.api.models import ErrorReply, Retriable
from quorate.metadata_log.errors import RETRY_AFTER_MS, ApiError, ErrorCode, NotController, OutcomeUnknown, Overloaded

_400 = (
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_PRINCIPAL_TYPE,
)
_403 = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_EXPIRED,
    ErrorCode.TOPIC_DELETION_DISABLED,
)
_404 = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.RESOURCE_NOT_FOUND,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
)
_409 = (
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.DUPLICATE_RESOURCE,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.NEW_LEADER_ELECTED,
    ErrorCode.DUPLICATE_VOTER,
)
_422 = (
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_CONFIG,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.UNACCEPTABLE_CREDENTIAL,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.INVALID_VOTER_KEY,
)

#: The status of every code. A request that was not started in time changed nothing: unavailable (503), and the client
#: may repeat it; the gateway's time-out (504) is kept for outcomes that nobody knows.
STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.NONE: 200,
    **dict.fromkeys(_400, 400),
    **dict.fromkeys(_403, 403),
    **dict.fromkeys(_404, 404),
    **dict.fromkeys(_409, 409),
    ErrorCode.POSITION_OUT_OF_RANGE: 416,
    **dict.fromkeys(_422, 422),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
    ErrorCode.UNKNOWN_SERVER_ERROR: 500,
    ErrorCode.REQUEST_TIMED_OUT: 503,
    ErrorCode.BROKER_NOT_AVAILABLE: 503,
    ErrorCode.NOT_CONTROLLER: 503,
}
STATUS_OUTCOME_UNKNOWN: Final = 504

_RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    }
)


class HttpRefusal(ApiError):
    """A request refused for its form, with a status that Kafka's codes do not tell apart."""

    def __init__(
        self,
        status: int,
        message: str,
        code: ErrorCode = ErrorCode.INVALID_REQUEST,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, message, details)
        self.status = status


#: In the details of a refusal by a quota: for how long (ms) more will be refused.
THROTTLE_TIME_MS: Final = "throttle_time_ms"
#: What waits is worked off before long, where nobody knows it better.
_RETRY_AFTER_MS_UNKNOWN: Final = 1_000.0
#: A day: whoever says more says nothing.
_RETRY_AFTER_MS_MAX: Final = 86_400_000.0
#: In the details of a refusal to go back to a moment: the earliest offset whose state the refusing controller has.
EARLIEST_OFFSET: Final = "earliest_offset"


class FeedOutOfRange(ApiError):
    """A follower's log is not this one, or this one no longer reaches back so far: the follower takes the checkpoint.

    Kafka's clients know both as one error, too (``LogTruncationException`` is an ``OffsetOutOfRangeException``).
    """

    def __init__(self, message: str, *, is_diverging: bool, log_start_offset: int, epoch: int, end_offset: int) -> None:
        details = {
            "is_diverging": is_diverging,
            "log_start_offset": log_start_offset,
            "epoch": epoch,
            "end_offset": end_offset,
        }
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message, details)
        self.is_diverging = is_diverging
        self.log_start_offset = log_start_offset
        #: The highest epoch of this log that is not above the follower's, and its (exclusive) end here.
        self.epoch = epoch
        self.end_offset = end_offset


def status_of(error: ApiError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, HttpRefusal):
        return error.status
    if isinstance(error, OutcomeUnknown):
        return STATUS_OUTCOME_UNKNOWN
    return STATUS[error.code]


def is_unknown(error: ApiError) -> bool:
    """Whether a controller refused because it does not know who asks: 401, or 429 after many such from one address."""
    status = status_of(error)
    is_again = status == HTTPStatus.TOO_MANY_REQUESTS and error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return status == HTTPStatus.UNAUTHORIZED or is_again


def is_no_access(error: ApiError) -> bool:
    """Whether a controller refused because of who asks: it does not know him, or he lacks a right (403)."""
    return status_of(error) == HTTPStatus.FORBIDDEN or is_unknown(error)


def retriable(error: ApiError) -> Retriable:
    """The rule for sending the same request again after this error."""
    if isinstance(error, OutcomeUnknown):
        return "after-reading"
    return "yes" if error.code in _RETRIABLE else "no"


def retry_after_ms(error: ApiError) -> float:
    """The milliseconds after which the same request may be sent again (429)."""
    said: float = error.details.get(THROTTLE_TIME_MS, 0) or error.details.get(RETRY_AFTER_MS, 0)
    return said or _RETRY_AFTER_MS_UNKNOWN


def retry_after_s(error: ApiError) -> int:
    """The same in whole seconds (``Retry-After`` of RFC 9110): at least one, the smallest that the header can say."""
    return max(1, math.ceil(retry_after_ms(error) / 1000))


def error_reply(error: ApiError, request_id: str, incident_id: str | None = None) -> ErrorReply:
    """The one shape that every error has on the wire."""
    return ErrorReply(
        error=error.code.name,
        code=int(error.code),
        message=error.message,
        retriable=retriable(error),
        leader_id=error.leader_id if isinstance(error, NotController) else None,
        request_id=request_id,
        incident_id=incident_id,
        details=dict(error.details),
    )


def error_from_reply(reply: ErrorReply, status: int) -> ApiError:
    """The error that a reply was made from, as far as its class matters to a client."""
    try:
        code = ErrorCode(reply.code)
    except ValueError:
        code = ErrorCode.UNKNOWN_SERVER_ERROR  # of a newer version: its name is in the message
        return HttpRefusal(status, f"{reply.error}: {reply.message}", code, reply.details)
    if reply.retriable == "after-reading":
        return OutcomeUnknown(reply.message, code)
    if code is ErrorCode.NOT_CONTROLLER:
        return NotController(reply.leader_id, reply.message)
    if code is ErrorCode.OFFSET_OUT_OF_RANGE and "is_diverging" in reply.details:
        return FeedOutOfRange(reply.message, **reply.details)
    if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED and THROTTLE_TIME_MS not in reply.details:
        return Overloaded(reply.message, retry_after_ms=_retry_after_ms(reply))
    if status != STATUS[code]:
        return HttpRefusal(status, reply.message, code, reply.details)
    return ApiError(code, reply.message, reply.details)


def _retry_after_ms(reply: ErrorReply) -> float:
    """The time that a reply says, where anything may stand; 0: none."""
    said = reply.details.get(RETRY_AFTER_MS)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said <= _RETRY_AFTER_MS_MAX:
        return 0.0
    return float(said)
