"""The answer to a request that failed: every failure becomes an error reply, and our own have an incident id."""

from __future__ import annotations

import secrets
from typing import NamedTuple

import structlog

from quorate.controller.api.errors import error_reply, retry_after_s, status_of
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.tracebacks import traceback_text

log = structlog.get_logger()


class FailureAnswer(NamedTuple):
    """An error reply."""

    status: int
    #: JSON.
    body: bytes
    #: Where the same request may be sent again: after so many seconds, the fewest that are said.
    retry_after_s: int


def failure_answer(error: Exception, method: str, path: str, request_id: str) -> FailureAnswer:
    """The answer to a failure. What is our own fault is logged under an incident id that the client is told."""
    if isinstance(error, ApiError) and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
        return _answer(error, request_id, None)
    incident_id = secrets.token_hex(8)
    log.error(
        "http.incident",
        incident_id=incident_id,
        request_id=request_id,
        method=method,
        path=path,
        exception=traceback_text(error),
    )
    message = error.message if isinstance(error, ApiError) else "an internal error, which is in the node's log"
    return _answer(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message), request_id, incident_id)


def _answer(error: ApiError, request_id: str, incident_id: str | None) -> FailureAnswer:
    reply = error_reply(error, request_id, incident_id)
    return FailureAnswer(status_of(error), reply.model_dump_json().encode(), retry_after_s(error))
