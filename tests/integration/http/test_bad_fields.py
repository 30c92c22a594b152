"""Every field of every request that the route table has, wrong in every way that its type can be wrong.

The requests are made from the models, so a new field or route is covered by being there, and a field without a bound
fails. Each must be refused with 400 INVALID_REQUEST, and nothing may change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import msgpack
import pytest

from quorate.controller.api.content import JSON, MSGPACK
from quorate.controller.api.models import ErrorReply
from quorate.controller.client.connection import body_to_send
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route
from quorate.snapshots.image_digest import digest_image
from tests.integration.http_stage import Stage, stage

Schema = dict[str, Any]
Place = tuple[str | int, ...]
UUID = "A" * 21 + "Q"
#: A request's first line may have no more: a longer one is refused by the HTTP library.
QUERY_CHARS_MAX = 8_000
WITH_BODY = [route for route in ROUTES if route.has_body]
WITH_PARAMETERS = [route for route in ROUTES if route.parameters.model_fields]


class Wrong(NamedTuple):
    """A value that a field must not have."""

    place: Place
    how: str
    value: Any


class Shape:
    """A request model as JSON Schema says it, with one whole request."""

    def __init__(self, route: Route) -> None:
        document = route.body.model_json_schema()
        self._parts: dict[str, Schema] = document.get("$defs", {})
        self.document = document
        self.is_packed = JSON not in route.media
        self._numbers = 0
        self.whole = self._sample(document)

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._parts[schema["$ref"].rpartition("/")[2]]
        return schema

    def _choices(self, schema: Schema) -> list[Schema]:
        """What the value may be, null aside."""
        choices = schema.get("anyOf") or schema.get("oneOf") or [schema]
        return [resolved for choice in choices if (resolved := self._resolved(choice)).get("type") != "null"]

    def _is_nullable(self, schema: Schema) -> bool:
        return any(choice.get("type") == "null" for choice in schema.get("anyOf", ()))

    def _sample(self, schema: Schema) -> Any:
        """A value that is as the schema says: every field is there, every list has an item."""
        schema = self._choices(self._resolved(schema))[0]
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                return {name: self._sample(field) for name, field in schema.get("properties", {}).items()}
            case "array":
                return [self._sample(schema["items"])]
            case "boolean":
                return False
            case "integer" | "number":
                # No two alike, as far as there are enough: some lists must not name a thing twice.
                self._numbers += 1
                low = max(schema.get("minimum", 0), 0)
                return low + self._numbers % (schema.get("maximum", 2**15) - low + 1)
            case "string" if schema.get("format") == "binary":
                return b""
            case "string":
                # Four letters are base64 too.
                return UUID if schema.get("maxLength") == len(UUID) else "x" * max(4, schema.get("minLength", 0))
        raise AssertionError(f"no sample of {schema}")

    def wrongs(self) -> Iterator[Wrong]:
        """Every field, wrong in every way."""
        yield from self._wrongs(self.document, ())

    def _wrongs(self, schema: Schema, place: Place) -> Iterator[Wrong]:
        schema = self._resolved(schema)
        if place and not self._is_nullable(schema):
            yield Wrong(place, "null", None)
        choices = self._choices(schema)
        if len(choices) > 1:
            yield Wrong(place, "of no type it may have", {"what": [{}]})
            return
        only = choices[0]
        for how, value in self._bad_values(only, place):
            yield Wrong(place, how, value)
        if only.get("type") == "object":
            required = set(only.get("required", ()))
            yield Wrong((*place, "no_such_field"), "unknown name", 1)
            for name, field in only.get("properties", {}).items():
                if name in required:
                    yield Wrong((*place, name), "missing", ...)
                yield from self._wrongs(field, (*place, name))
        elif only.get("type") == "array":
            yield from self._wrongs(only["items"], (*place, 0))

    def _bad_values(self, schema: Schema, place: Place) -> Iterator[tuple[str, Any]]:
        if "enum" in schema or "const" in schema:
            yield from (("unknown name", "NO_SUCH_NAME"), ("empty", ""), ("number", 1 << 20), ("list", []))
            return
        match schema["type"]:
            case "object":
                yield from (("list", []), ("text", "x"), ("number", 1))
            case "array":
                assert "maxItems" in schema, f"{place}: a list without a limit"
                yield from (("object", {}), ("text", "x"), ("number", 1))
                yield "too long", [self._sample(schema["items"])] * (schema["maxItems"] + 1)
            case "boolean":
                yield from (("text", "true"), ("number", 1), ("list", []))
            case "integer" | "number" as kind:
                yield from (("text", "1"), ("truth", True), ("list", []), ("object", {}))
                if kind == "integer":
                    assert {"minimum", "maximum"} <= schema.keys(), f"{place}: a number without a limit"
                    yield from (("fraction", schema["minimum"] + 0.5), ("huge", 10**30), ("hugely negative", -(10**30)))
                    yield from (("over", schema["maximum"] + 1), ("under", schema["minimum"] - 1))
            case "string":
                is_binary = schema.get("format") == "binary"
                assert is_binary or "maxLength" in schema, f"{place}: a text without a limit"
                yield from (("number", 1), ("list", []), ("object", {}), ("truth", True))
                if not is_binary:
                    yield "too long", "x" * (schema["maxLength"] + 1)
                if schema.get("minLength"):
                    yield "empty", ""

    def ends(self) -> Iterator[Wrong]:
        """Every field, at the ends of what its type allows: refused or not, as the rules say."""
        yield from self._ends(self.document, ())

    def _ends(self, schema: Schema, place: Place) -> Iterator[Wrong]:
        schema = self._resolved(schema)
        for choice in self._choices(schema):
            if "enum" in choice or "const" in choice:
                yield from (Wrong(place, "another", value) for value in choice.get("enum", ()))
                continue
            match choice.get("type"):
                case "object":
                    for name, field in choice.get("properties", {}).items():
                        yield from self._ends(field, (*place, name))
                case "array":
                    item = self._sample(choice["items"])
                    yield Wrong(place, "empty", [])
                    yield Wrong(place, "twice the same", [item, item])
                    yield from self._ends(choice["items"], (*place, 0))
                case "integer" | "number":
                    ends = (choice.get("minimum", -1e300), -1, 0, choice.get("maximum", 1e300))
                    yield from (Wrong(place, "end of its range", value) for value in ends)
                case "boolean":
                    yield Wrong(place, "true", True)
                case "string" if choice.get("format") != "binary":
                    for text in ("", "x" * choice["maxLength"], "\x00", "\u00e4\n/..", "no-such-name"):
                        yield Wrong(place, "odd text", text)

    def with_wrong(self, wrong: Wrong) -> Any:
        """The whole request with one thing wrong in it."""
        if not wrong.place:
            return wrong.value
        body = deepcopy(self.whole)
        at = body
        for step in wrong.place[:-1]:
            at = at[step]
        if wrong.value is ...:
            del at[wrong.place[-1]]
        else:
            at[wrong.place[-1]] = wrong.value
        return body


async def send(s: Stage, route: Route, path: str, data: bytes | None, media: str) -> tuple[int, ErrorReply]:
    headers = {} if data is None else {"Content-Type": media}
    async with s.session.request(
        route.method, s.members[1].url + path, data=body_to_send(data), headers=headers
    ) as answer:
        body = await answer.read()
        assert answer.status >= 400, f"{route.method} {path} was taken: {answer.status} {body[:200]!r}"
        return answer.status, ErrorReply.model_validate_json(body)


def test_every_request_with_a_body_has_a_whole_sample() -> None:
    """What is made wrong below is right as it is: so it is the one wrong thing that is refused."""
    for route in WITH_BODY:
        shape = Shape(route)
        if shape.is_packed:
            route.body.model_validate(shape.whole)
        else:
            route.body.model_validate_json(json.dumps(shape.whole))


@pytest.mark.parametrize("route", WITH_BODY, ids=lambda route: f"{route.method} {route.path}")
async def test_field_that_is_wrong_in_any_way_is_refused_and_nothing_changes(route: Route) -> None:
    shape = Shape(route)
    problems = []
    async with stage(1) as s:
        await s.register(1, 11)
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "known"}]})
        end, before = s.quorum.log_end_offset, digest_image(s.members[1].controller.stable).value
        for wrong in shape.wrongs():
            body = shape.with_wrong(wrong)
            try:
                packed: bytes = msgpack.packb(body) if shape.is_packed else json.dumps(body).encode()
            except OverflowError:  # msgpack has no form for a huge number
                continue
            status, reply = await send(s, route, route.path, packed, MSGPACK if shape.is_packed else JSON)
            if (status, reply.error) != (400, "INVALID_REQUEST"):
                problems.append(f"{wrong.place} {wrong.how}: {status} {reply.error}: {reply.message[:200]}")
            if s.quorum.log_end_offset != end:
                problems.append(f"{wrong.place} {wrong.how}: something was written")
                end = s.quorum.log_end_offset
        assert digest_image(s.members[1].controller.stable).value == before
        assert s.members[1].faults.seen == []
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("route", WITH_BODY, ids=lambda route: f"{route.method} {route.path}")
async def test_field_at_the_ends_of_its_range_is_no_fault_and_a_refusal_changes_nothing(route: Route) -> None:
    shape = Shape(route)
    problems = []
    async with stage(1) as s:
        await s.register(1, 11)
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "known"}]})
        for wrong in shape.ends():
            body = shape.with_wrong(wrong)
            end = s.quorum.log_end_offset
            data: bytes = msgpack.packb(body) if shape.is_packed else json.dumps(body).encode()
            headers = {"Content-Type": MSGPACK if shape.is_packed else JSON}
            url = s.members[1].url + route.path
            async with s.session.request(route.method, url, data=body_to_send(data), headers=headers) as answer:
                said = await answer.read()
            if answer.status >= 500:
                problems.append(f"{wrong.place} {wrong.how} {str(wrong.value)[:40]!r}: {answer.status} {said[:300]!r}")
            if answer.status >= 400 and s.quorum.log_end_offset != end:
                problems.append(f"{wrong.place} {wrong.how}: refused with {said[:200]!r}, and something was written")
        assert s.members[1].faults.seen == []
    assert not problems, "\n".join(problems)


def bad_queries(route: Route) -> Iterator[tuple[str, str]]:
    """Query parameters that are wrong, and one that is not known."""
    document = route.parameters.model_json_schema()
    parts = document.get("$defs", {})
    for name, field in document["properties"].items():
        if f"{{{name}}}" in route.path:
            continue
        choices = [c for c in field.get("anyOf", [field]) if c.get("type") != "null"]
        schema = parts[choices[0]["$ref"].rpartition("/")[2]] if "$ref" in choices[0] else choices[0]
        if "enum" in schema:
            yield name, "NO_SUCH_NAME"
        elif schema.get("type") in ("integer", "boolean"):
            yield from ((name, "x"), (name, ""), (name, "1.5"), (name, "1" * 40), (name, "-" + "1" * 40))
        elif schema.get("type") == "string":
            assert "maxLength" in schema or "pattern" in schema, f"{route.path} {name}: a text without a limit"
            if schema.get("maxLength", 0) < QUERY_CHARS_MAX:
                yield name, "x" * (schema.get("maxLength", 1_000) + 1)
    yield "no_such_parameter", "1"


@pytest.mark.parametrize("route", WITH_PARAMETERS, ids=lambda route: f"{route.method} {route.path}")
async def test_parameter_that_is_wrong_in_any_way_is_refused(route: Route) -> None:
    problems = []
    async with stage(1) as s:
        path = route.path.replace("{broker_id}", "11").replace("{name}", "known")
        for name, value in bad_queries(route):
            status, reply = await send(s, route, f"{path}?{name}={value}", None, JSON)
            if (status, reply.error) != (400, "INVALID_REQUEST"):
                problems.append(f"{name}={value[:30]}: {status} {reply.error}: {reply.message[:200]}")
    assert not problems, "\n".join(problems)
