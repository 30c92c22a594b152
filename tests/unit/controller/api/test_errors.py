"""Errors on the wire: a status and a word on repeating for each code, and the same error again at the client."""

from __future__ import annotations

import pytest

from quorate.controller.api.errors import (
    STATUS,
    THROTTLE_TIME_MS,
    FeedOutOfRange,
    HttpRefusal,
    error_from_reply,
    error_reply,
    retriable,
    retry_after_s,
    status_of,
)
from quorate.controller.api.models import ErrorReply
from quorate.metadata_log.errors import (
    RETRY_AFTER_MS,
    ApiError,
    ErrorCode,
    LimitExceeded,
    NotController,
    OutcomeUnknown,
    Overloaded,
)

FEED = FeedOutOfRange("take a checkpoint", is_diverging=True, log_start_offset=3, epoch=2, end_offset=9)


def test_every_error_code_has_a_status() -> None:
    assert set(STATUS) == set(ErrorCode)
    assert {status // 100 for code, status in STATUS.items() if code is not ErrorCode.NONE} == {4, 5}


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (ApiError(ErrorCode.INVALID_REQUEST, "no"), 400, "no"),
        (ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no"), 404, "no"),
        (ApiError(ErrorCode.STALE_BROKER_EPOCH, "no"), 409, "no"),
        (ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no"), 422, "no"),
        (LimitExceeded("no", ErrorCode.POLICY_VIOLATION), 422, "no"),
        (Overloaded("later"), 429, "yes"),
        (NotController(None), 503, "yes"),
        (ApiError(ErrorCode.REQUEST_TIMED_OUT, "not started"), 503, "yes"),
        (OutcomeUnknown("who knows"), 504, "after-reading"),
        (OutcomeUnknown("who knows", ErrorCode.NOT_CONTROLLER), 504, "after-reading"),
        (ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "oh"), 500, "no"),
        (HttpRefusal(413, "too large"), 413, "no"),
        (FEED, 409, "no"),
    ],
)
def test_error_status_and_whether_the_request_may_be_repeated(error: ApiError, status: int, word: str) -> None:
    assert (status_of(error), retriable(error)) == (status, word)


@pytest.mark.parametrize(
    "error",
    [
        *(ApiError(code, "why") for code in ErrorCode if code is not ErrorCode.NONE),
        NotController(7),
        NotController(None, "nobody"),
        OutcomeUnknown("who knows", ErrorCode.NOT_CONTROLLER),
        Overloaded("later"),
        Overloaded("later", retry_after_ms=2_500.3),
        HttpRefusal(413, "too large", details={"bytes_max": 5}),
        FEED,
    ],
    ids=lambda error: f"{type(error).__name__}-{error.code.name}",
)
def test_error_is_the_same_again_at_the_client(error: ApiError) -> None:
    reply = ErrorReply.model_validate_json(error_reply(error, "request-1").model_dump_json())
    again = error_from_reply(reply, status_of(error))
    assert (again.code, again.message, status_of(again)) == (error.code, error.message, status_of(error))
    assert isinstance(again, OutcomeUnknown) == isinstance(error, OutcomeUnknown)
    if isinstance(error, NotController):
        assert isinstance(again, NotController)
        assert again.leader_id == error.leader_id
    if isinstance(error, HttpRefusal | FeedOutOfRange | Overloaded):
        assert isinstance(again, type(error))
        assert again.details == error.details


def test_error_of_a_newer_version_keeps_its_name() -> None:
    reply = error_reply(ApiError(ErrorCode.INVALID_REQUEST, "why"), "r").model_copy(
        update={"error": "NEW", "code": 9999}
    )
    assert str(error_from_reply(reply, 400)) == "NEW: why"


def test_error_reply_has_every_field_in_json() -> None:
    reply = error_reply(ApiError(ErrorCode.INVALID_REQUEST, "why"), "request-1")
    assert reply.model_dump() == {
        "error": "INVALID_REQUEST",
        "code": 42,
        "message": "why",
        "retriable": "no",
        "leader_id": None,
        "request_id": "request-1",
        "incident_id": None,
        "details": {},
    }


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Overloaded("later"), 1),
        (Overloaded("later", retry_after_ms=20), 1),
        (Overloaded("later", retry_after_ms=2_000), 2),
        (Overloaded("later", retry_after_ms=2_000.1), 3),
        (ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "used up", {THROTTLE_TIME_MS: 4_100}), 5),
    ],
)
def test_client_is_told_to_come_again_when_there_is_room_in_whole_seconds(error: ApiError, seconds: int) -> None:
    assert retry_after_s(error) == seconds


@pytest.mark.parametrize("said", ["soon", -5, None, [], True, float("inf"), 10**400])
def test_time_to_come_again_that_is_none_is_not_taken(said: object) -> None:
    reply = error_reply(Overloaded("later"), "r").model_copy(update={"details": {RETRY_AFTER_MS: said}})
    assert error_from_reply(reply, 429).details == {}
