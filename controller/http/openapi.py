"""The OpenAPI 3.1 document, made from the route table and the models' JSON schemas."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from quorate.controller.api import headers
from quorate.controller.api.content import JSON
from quorate.controller.api.models import ErrorReply, Nothing
from quorate.controller.decisions.origin import ANONYMOUS, CLIENT_ID_CHARS_MAX, PRINCIPAL_CHARS_MAX, PRINCIPAL_FORM
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Route

API_VERSION: Final = "1"
_REFERENCE: Final = "#/components/schemas/{model}"
_PATH_PARAMETER: Final = re.compile(r"{(\w+)}")
_DESCRIPTION: Final = (
    "Metadata of a Kafka cluster, agreed on by the controllers. Any controller takes any request: a standby passes on, "
    "once, what only the active controller may answer. Requests have the names and fields of Kafka's RPCs."
)
#: Headers of every answer.
_COMMON_HEADERS: Final = (
    (headers.REQUEST_ID, "Names the request in logs and errors."),
    (headers.NODE, "Node that made the answer."),
    (headers.CLUSTER, "Cluster id."),
    (headers.ACTIVE, "Active controller, as far as that node knows; empty when it knows none."),
    (headers.EPOCH, "Newest leader epoch that it knows of."),
    (headers.HIGH_WATERMARK, "(Exclusive) end of what it knows to be committed."),
)


class Document:
    """The document of one table as JSON, made when it is first asked for: that takes longer than an election."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes

    @cached_property
    def body(self) -> bytes:
        """The document's bytes."""
        return json.dumps(make_document(self._routes), separators=(",", ":")).encode()


#: The document of the application's own table.
DOCUMENT_KEY: Final = web.AppKey("document", Document)


def make_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document for a table."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quorate controller", "version": API_VERSION, "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "securitySchemes": {"secret": {"type": "http", "scheme": "bearer"}},
        },
        # Needed where the controllers share a secret; without one they listen on loopback addresses only.
        "security": [{"secret": []}, {}],
    }


def _schemas(routes: Sequence[Route]) -> dict[str, Any]:
    models: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {(ErrorReply, "serialization"): None}
    for route in routes:
        if route.has_body:
            models[route.body, "validation"] = None
        if route.reply is not None:
            models[route.reply, "serialization"] = None
    _, definitions = models_json_schema(list(models), ref_template=_REFERENCE)
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handler.__name__,
        "tags": [route.tag],
        "parameters": [*_parameters(route)],
        "responses": {str(status): response for status, response in _responses(route)},
    }
    if route.has_body:
        operation["requestBody"] = {"required": True, "content": {kind: _schema(route.body) for kind in route.media}}
    return operation


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    schema = route.parameters.model_json_schema()
    in_path = _PATH_PARAMETER.findall(route.path)
    for name, described in schema.get("properties", {}).items():
        described = {key: value for key, value in described.items() if key != "title"}
        yield {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in schema.get("required", ()),
            "description": described.pop("description", ""),
            "schema": described,
        }
    if not route.is_raw:
        yield {
            "name": headers.TIMEOUT_MS,
            "in": "header",
            "required": False,
            "description": "How long (ms) the client waits.",
            "schema": {"type": "integer", "minimum": 1},
        }
        yield {
            "name": headers.PRINCIPAL,
            "in": "header",
            "required": False,
            "description": f"Who asks; `{ANONYMOUS}` where it is not said. Without an authorizer it is what the client "
            "says; with one only proxies may ask in other names.",
            "schema": {"type": "string", "pattern": PRINCIPAL_FORM, "maxLength": PRINCIPAL_CHARS_MAX},
        }
        yield {
            "name": headers.CLIENT_ID,
            "in": "header",
            "required": False,
            "description": "The program's name for itself, by which client quotas know it.",
            "schema": {"type": "string", "maxLength": CLIENT_ID_CHARS_MAX},
        }


def _responses(route: Route) -> Iterator[tuple[int, dict[str, Any]]]:
    yield 200, _success(route, "Done.")
    if route.is_bulk:
        yield 207, _success(route, "Some of several things failed: the outcomes are in the reply, one by one.")
    statuses = {400, 401, 403, 429, 500, *route.errors}
    if route.has_body:
        statuses |= {413, 415, 417}
    if not route.is_raw:
        statuses.add(503)
    if route.is_write:
        statuses.add(504)
    for status in sorted(statuses):
        yield status, _answer(_meaning(route, status), {JSON: _schema(ErrorReply)}, ())
    if route.path == "/readyz":
        yield 503, _success(route, "Not ready; the checks say why.")


def _meaning(route: Route, status: int) -> str:
    phrase = HTTPStatus(status).phrase
    if status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return f"{phrase}."
    bound = "what `http.body_bytes_max` says" if route.takes_lists else f"{route.body_bytes_max(sys.maxsize):,} bytes"
    return f"{phrase}: a body has {bound} at most."


def _success(route: Route, description: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"schema": {}} if route.reply is None else _schema(route.reply)
    return _answer(description, dict.fromkeys(route.media, schema), route.headers)


def _answer(description: str, content: dict[str, Any], more: Sequence[tuple[str, str]]) -> dict[str, Any]:
    described = {name: {"description": text, "schema": {"type": "string"}} for name, text in (*_COMMON_HEADERS, *more)}
    return {"description": description, "headers": described, "content": content}


async def get_openapi(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    return web.Response(body=request.app[DOCUMENT_KEY].body, content_type=JSON)
