"""Requests to a broker process as they come: what they ask for, or what is wrong with them."""

from __future__ import annotations

from typing import Final, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from quorate.broker.replicas.messages import FRAME_BYTES_MAX
from quorate.metadata_log.errors import ApiError, ErrorCode

_READ_BYTES: Final = 65_536

P = TypeVar("P", bound=BaseModel)


def check_form(request: web.Request, content_type: str) -> None:
    """No web page may do this in its reader's name: it cannot send these types.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if request.content_type != content_type:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the body is {request.content_type[:100]!r}, not {content_type}")
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the body is compressed, {coding[:100]!r}: send it as it is")


async def body_of(request: web.Request) -> bytes:
    """All of it.

    Raises:
        ApiError: INVALID_REQUEST, it is larger than any message; read no further than that.
    """
    body = b""
    while chunk := await request.content.read(_READ_BYTES):
        body += chunk
        if len(body) > FRAME_BYTES_MAX:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the body has more than {FRAME_BYTES_MAX} bytes")
    return body


async def from_json(model: type[P], request: web.Request) -> P:
    """The body as a model.

    Raises:
        ApiError: INVALID_REQUEST, it is not JSON, or a field is unknown or wrong.
    """
    try:
        return model.model_validate_json(await body_of(request))
    except ValidationError as error:
        raise _refusal(error, "field") from error


def parameters_of(model: type[P], request: web.Request) -> P:
    """The query as a model.

    Raises:
        ApiError: INVALID_REQUEST, a parameter that is unknown, repeated or wrong.
    """
    values = dict(request.query)
    if len(values) != len(request.query):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a parameter was given more than once")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _refusal(error, "parameter") from error


def _refusal(error: ValidationError, what: str) -> ApiError:
    problem = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in problem["loc"])
    message = "is not known" if problem["type"] == "extra_forbidden" else problem["msg"]
    return ApiError(ErrorCode.INVALID_REQUEST, f"{what} {name[:100]}: {message}")
