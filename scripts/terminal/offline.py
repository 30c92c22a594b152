"""Answers from files: the routes of the HTTP API, called in this process, on a node that stands still."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from quorate.controller.api.content import JSON, decode_parameters
from quorate.controller.api.models import MomentParameters, Nothing
from quorate.controller.client.connection import Answer, Request
from quorate.controller.http.dispatch import encode, run_route
from quorate.controller.http.ports import Node
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Call, Route
from quorate.controller.permissions.rights import ALL_RIGHTS
from quorate.controller.process.image_node import node_of
from quorate.controller.reads.absences import Absences
from quorate.controller.reads.additions import Additions, adding_changes
from quorate.metadata_log.directory.epoch_leader import leader_in_files
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.directory.reader import FileBatch
from quorate.metadata_log.errors import ApiError, ErrorCode, StorageError
from quorate.metadata_log.ids import Uuid
from quorate.scripts.terminal.passed_over import load_image_and_say
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.checkpoints.moments import parse_moment
from quorate.snapshots.errors import ImageNotAvailable

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class FileAnswers:
    """``client.attempts.Sender``: what a controller would answer whose state is that of files at a moment."""

    def __init__(self, path: Path, at: str | None) -> None:
        """Nothing is read before the first question."""
        self._path = path
        self._at = at
        self._node: Node | None = None

    async def send(self, request: Request, *, is_repeatable: bool) -> Answer:
        """The answer of the route that reads an image.

        Raises:
            ApiError: the route's refusal; INVALID_REQUEST where the question is not one that an image can answer.
            ImageNotAvailable, StorageError, ReplayError: nothing can be read, or not of this moment.
        """
        route, named = _route_of(request)
        query = [(name, str(value)) for name, value in (request.parameters or {}).items()]
        parameters = decode_parameters(route.parameters, named, query)
        call, body = Call(self._still_node(), request.timeout_ms, ALL_RIGHTS), request.body or Nothing()
        reply = await run_route(route, call, parameters, body)
        status, data = encode(reply, JSON, is_bulk=route.is_bulk)
        return Answer(status, {"Content-Type": JSON}, data)

    def _still_node(self) -> Node:
        if self._node is None:
            moment = None if self._at is None else parse_moment(self._at)
            image, _ = load_image_and_say(self._path, moment)
            leader_id = leader_in_files(self._path, image.provenance.epoch)
            self._node = node_of(image, _cluster_id(self._path), leader_id, _FileLog(self._path))
        return self._node


def _route_of(request: Request) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        if route.method == request.method and issubclass(route.parameters, MomentParameters):
            pattern = _PARAMETER.sub(r"(?P<\1>[^/]+)", route.path)
            match = re.fullmatch(pattern, request.path)
            if match is not None:
                return route, {name: unquote(text) for name, text in match.groupdict().items()}
    message = f"{request.method} {request.path} is for running controllers, not for files"
    raise ApiError(ErrorCode.INVALID_REQUEST, message)


class _FileLog:
    """``BrokerAbsences`` and ``ReplicaAdditions`` of files."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def at(self, end_offset: int) -> Mapping[int, int]:
        absences = Absences()
        try:
            for batch in self._batches(end_offset):
                absences.take_batches(batch.data, end_offset)
        except (ImageNotAvailable, StorageError):
            return {}  # the state came from a checkpoint, and no log that leads up to it is whole
        return absences.since_ms

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        additions = Additions()
        try:
            for batch in self._batches(end_offset):
                additions.take(adding_changes(batch.data, end_offset)[0])
        except (ImageNotAvailable, StorageError):
            return {}  # as above
        return additions.since_ms(topic_id, partition, end_offset)

    def _batches(self, end_offset: int) -> Iterator[FileBatch]:
        return takewhile(lambda batch: batch.header.base_offset < end_offset, batches_from_start(self._path)[1])


def _cluster_id(path: Path) -> str:
    """The cluster that the directory belongs to, or is in; "" where nothing says so."""
    for directory in (path, *path.absolute().parents[:2]):
        file = directory / META_PROPERTIES_NAME
        if file.is_file():
            return decode_meta_properties(file.read_bytes(), str(file)).cluster_id
    return ""
