"""What commands of tests write with `--json`, held against the schemas in docs/schemas that programs go by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs

from quorate.scripts.cli.shell.answer_schemas import ANSWERS, FORMS, schema_of
from quorate.scripts.cli.shell.own_forms import Wrapping

COMMANDS = ANSWERS.keys() | FORMS.keys()


def check_answer(arguments: Sequence[str], out: str) -> None:
    """Check what a command has written, if it is an answer that has a schema. Nothing is in it that no schema tells."""
    command = next((name for n in (3, 2, 1) if (name := " ".join(arguments[:n])) in COMMANDS), None)
    if command is None or "--json" not in arguments:
        return
    is_whole = command in FORMS and FORMS[command].wrapping is not Wrapping.LINES
    for document in [out] if is_whole and out else out.splitlines():
        _schema(command).validate(json.loads(document))


@cache
def _schema(command: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(_closed(schema_of(command)))


def _closed(schema: Any) -> Any:
    """The schema, of which no object may have more fields."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {name: _closed(one) for name, one in schema.items()}
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed
