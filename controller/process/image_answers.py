"""Answers over an image: the routes of the HTTP API, called in this process, on a node that stands still."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from quorate.controller.api.content import JSON, decode_parameters
from quorate.controller.api.models import MomentParameters, Nothing
from quorate.controller.client.answers import AnswerClient
from quorate.controller.client.client import DEFAULT_TIMEOUT_MS, ControllerClient
from quorate.controller.client.connection import Answer, Request
from quorate.controller.http.dispatch import encode, run_route
from quorate.controller.http.ports import Node
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Call, Route
from quorate.controller.permissions.rights import ALL_RIGHTS
from quorate.controller.process.image_node import node_of
from quorate.metadata_log.arguments import checked_call
from quorate.metadata_log.errors import ApiError, ErrorCode, InvalidArgument
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.image.image import MetadataImage

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


@checked_call
def answers_of(image: MetadataImage, *, cluster_id: str = "", timeout_ms: float = DEFAULT_TIMEOUT_MS) -> AnswerClient:
    """The answers of controllers in this state: the same questions, replies and refusals as of running ones.

    Nobody is asked. What only settings know is as by default; about controllers, and since when something is so, no
    image tells.

    Args:
        cluster_id: to stand in the replies that name the cluster.
        timeout_ms: one answer may take so long: REQUEST_TIMED_OUT beyond.

    Raises:
        InvalidArgument.
    """
    sender = StillAnswers(lambda: node_of(image, cluster_id, None, NoLog()))
    return ControllerClient((), sender=sender, timeout_ms=timeout_ms).answers


@checked_call
def read_image(path: str | PathLike[str], at: str | int | None = None) -> MetadataImage:
    """The state that files hold, which nobody is writing to. A checkpoint that is damaged is passed over.

    Args:
        path: a metadata directory, Kafka's as well, a segment or a checkpoint.
        at: an offset, or a moment as commands take it with `--at`; None: the end of what the files hold.

    Raises:
        InvalidArgument: ``at`` is no moment. ImageNotAvailable: the files do not reach to it. StorageError: nothing is
            there, or it is damaged. ReplayError: a record cannot be replayed; says its offset. All are
            ``QuorateError``.
    """
    try:
        moment = None if at is None else parse_moment(str(at))
    except ValueError as error:
        raise InvalidArgument(f"read_image: {error}") from None
    return load_image(Path(path), moment)


class StillAnswers:
    """``client.attempts.Sender``: a controller that stands still."""

    def __init__(self, make: Callable[[], Node]) -> None:
        """``make``: the node, on the running loop. It is called with the first question that an image can answer."""
        self._make = make
        self._node: Node | None = None

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """The answer of the route that reads an image.

        Raises:
            ApiError: the route's refusal; INVALID_REQUEST where the question is not one that an image can answer.
            What making the node raises.
        """
        route, named = _route_of(request)
        query = [(name, str(value)) for name, value in (request.parameters or {}).items()]
        parameters = decode_parameters(route.parameters, named, query)
        if self._node is None:
            self._node = self._make()
        call, body = Call(self._node, request.timeout_ms, ALL_RIGHTS), request.body or Nothing()
        reply = await run_route(route, call, parameters, body)
        status, data = encode(reply, JSON, is_bulk=route.is_bulk)
        return Answer(status, {"Content-Type": JSON}, data)


def _route_of(request: Request) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        if route.method == request.method and issubclass(route.parameters, MomentParameters):
            pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", route.path)
            match = re.fullmatch(pattern, request.path)
            if match is not None:
                return route, {name: unquote(text) for name, text in match.groupdict().items()}
    message = f"{request.method} {request.path} is for running controllers: no image tells it"
    raise ApiError(ErrorCode.INVALID_REQUEST, message)


class NoLog:
    """``BrokerAbsences`` and ``ReplicaAdditions`` of an image alone."""

    async def at(self, end_offset: int) -> Mapping[int, int]:
        return MappingProxyType({})

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        return MappingProxyType({})
