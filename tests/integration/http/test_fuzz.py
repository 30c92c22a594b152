"""Requests made from the OpenAPI document: whatever is sent, the answer is one that the document describes."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgpack
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from quorate.controller.api.content import MSGPACK
from quorate.controller.http.openapi import make_document
from quorate.controller.http.routes.table import ROUTES
from tests.integration.http_stage import stage

#: Requests to each operation in the default run.
EXAMPLES = int(os.environ.get("QUORATE_TEST_FUZZ_EXAMPLES", "8"))
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
DOCUMENT = make_document(ROUTES)
#: Streams do not end: these have tests of their own, and of the feed the rest of its parameters is tried.
STREAMS = {"/v1/events"}
SKIPPED_PARAMETERS = {"/v1/metadata/batches": ("stream", "wait_ms"), "/v1/image/digest": ("wait_ms",)}


@schemathesis.serializer(MSGPACK)
def _pack(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """The tool knows JSON only. Numbers that msgpack has no form for are sent as text."""
    packed: bytes = msgpack.packb(value, default=str, unicode_errors="surrogatepass")
    return packed


def operations() -> list[Any]:
    """Every operation, as the tool reads it from the document."""
    paths = {path: dict(methods) for path, methods in DOCUMENT["paths"].items() if path not in STREAMS}
    document = {**DOCUMENT, "paths": paths}
    for path, names in SKIPPED_PARAMETERS.items():
        described = document["paths"][path]["get"]
        kept = [parameter for parameter in described["parameters"] if parameter["name"] not in names]
        document["paths"][path]["get"] = {**described, "parameters": kept}
    schema = schemathesis.openapi.from_dict(document)
    return [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]


def fuzz(operation: Any, base_url: str) -> None:
    """Send requests that fit the document; hypothesis shows the smallest one that is answered otherwise."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        response = case.call(base_url=base_url, timeout=20)
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=CHECKS)

    send()


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: f"{operation.method} {operation.path}")
async def test_operation_answers_every_request_as_the_document_says(operation: Any) -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "known"}]})
        await asyncio.to_thread(fuzz, operation, s.urls[0])
        assert s.members[1].faults.seen == []
