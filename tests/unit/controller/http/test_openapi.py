"""The OpenAPI document: valid, and all of the route table is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from schemathesis.core.result import Err, Ok

from quorate.controller.http.openapi import make_document
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route

DOCUMENT = make_document(ROUTES)


def operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


def references(node: object) -> Iterator[str]:
    """Every `$ref` in a document."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for part in node.values():
            yield from references(part)
    elif isinstance(node, list):
        for part in node:
            yield from references(part)


def test_openapi_has_exactly_the_routes_of_the_table() -> None:
    described = {(method.upper(), path) for path, operations in DOCUMENT["paths"].items() for method in operations}
    assert described == {(route.method, route.path) for route in ROUTES}
    assert len(described) == len(ROUTES)


def test_openapi_operations_have_names_of_their_own() -> None:
    names = [operation(route)["operationId"] for route in ROUTES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("path", "name", "models"),
    [
        ("/v1/topics", "create_topics", "CreateTopics"),
        ("/v1/acls/delete", "delete_acls", "DeleteAcls"),
        ("/v1/delegation-tokens/renew", "renew_token", "RenewDelegationToken"),
    ],
)
def test_openapi_of_a_write_names_what_its_operation_takes_and_gives(path: str, name: str, models: str) -> None:
    described = DOCUMENT["paths"][path]["post"]
    assert described["operationId"] == name
    media = "application/json"
    assert described["requestBody"]["content"][media]["schema"]["$ref"].endswith(f"/{models}Request")
    assert described["responses"]["200"]["content"][media]["schema"]["$ref"].endswith(f"/{models}Response")


def test_openapi_references_lead_somewhere() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert {name for name in references(DOCUMENT) if name.rpartition("/")[2] not in schemas} == set()


def test_openapi_component_schemas_are_valid_json_schemas() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_openapi_is_read_by_a_tool_that_checks_it() -> None:
    """Schemathesis resolves every reference and every parameter of every operation."""
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(DOCUMENT)))
    results = list(schema.get_all_operations())
    assert [result for result in results if isinstance(result, Err)] == []
    found = {(result.ok().method.upper(), result.ok().path) for result in results if isinstance(result, Ok)}
    assert found == {(route.method, route.path) for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_openapi_operation_says_parameters_body_and_every_status(route: Route) -> None:
    described = operation(route)
    in_path = {parameter["name"] for parameter in described["parameters"] if parameter["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", route.path))
    in_query = {parameter["name"] for parameter in described["parameters"] if parameter["in"] == "query"}
    assert in_path | in_query == set(route.parameters.model_fields)
    assert all(parameter["description"] for parameter in described["parameters"])
    assert ("requestBody" in described) == route.has_body
    statuses = {int(status) for status in described["responses"]}
    assert {200, 400, 500} <= statuses
    assert set(route.errors) <= statuses
    assert (504 in statuses) == route.is_write
    assert (207 in statuses) == route.is_bulk
    assert all(HTTPStatus(status).phrase for status in statuses)
    assert described["summary"]


@pytest.mark.parametrize("route", [r for r in ROUTES if r.is_write], ids=lambda route: f"{route.method} {route.path}")
def test_route_that_writes_is_answered_by_the_active_controller(route: Route) -> None:
    assert route.serving.value == "active"
    assert route.method in ("POST", "DELETE")


def test_http_api_page_names_every_route() -> None:
    page = (Path(__file__).parents[4] / "docs" / "http-api.md").read_text(encoding="utf-8")
    assert [f"{route.method} {route.path}" for route in ROUTES if f"{route.method} {route.path}`" not in page] == []
