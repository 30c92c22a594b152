"""docs/schemas: what commands say with --json is what is promised, and no promise is broken in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from quorate.scripts.cli.shell.answer_schemas import ANSWERS, FORMS, broken_promises, file_name, schema_of
from quorate.scripts.generate_answer_schemas import DIRECTORY, complaints, made, write
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.unit.scripts.cli.test_reading_commands import leaves_of_all

LOG = Path(__file__).parents[4] / "data" / "kafka" / "dynamic-small" / "m1" / "log"


def test_files_are_those_that_the_models_make() -> None:
    again = "python -m quorate.scripts.generate_answer_schemas"
    found = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in DIRECTORY.glob("*.json")}
    assert found.keys() == made().keys(), again
    for name, schema in made().items():
        assert found[name] == schema, f"{name}: {again}"


def test_every_command_with_json_has_a_schema() -> None:
    writing_json = {name for name, command in leaves_of_all() if any("--json" in one.opts for one in command.params)}
    with_schema = ANSWERS.keys() | FORMS.keys()
    assert writing_json - with_schema == set(), "give it a model in answer_schemas, or a form in own_forms or job_forms"
    assert with_schema - writing_json == set(), "no such command writes JSON"
    assert ANSWERS.keys() & FORMS.keys() == set()


READS = [
    ("acls list",), ("brokers list",), ("brokers describe", "11"), ("can-stop broker", "12"),
    ("cluster describe",), ("cluster balance", "--dry-run"),
    ("configs describe", "topic/ants"), ("explain",), ("explain", "broker", "12"), ("features describe",),
    ("labels list",), ("partitions describe", "ants-0"), ("partitions list", "a*"),
    ("quorum controllers",), ("quorum describe",), ("quotas list",), ("reassign list",), ("status",), ("tokens list",),
    ("topics describe", "ants"), ("topics list",), ("users list",), ("what-if", "stop", "broker", "12"),
    ("snapshot list",),
]  # fmt: skip


@pytest.mark.parametrize("arguments", READS, ids=lambda arguments: " ".join(arguments))
async def test_answer_is_of_its_schema_and_has_no_field_that_it_does_not_tell(arguments: tuple[str, ...]) -> None:
    ended = await alone(*arguments[0].split(), *arguments[1:], "--json", "--from", str(LOG))
    assert ended.code in (exit_codes.DONE, exit_codes.REFUSED, exit_codes.CRITICAL), ended
    document: dict[str, Any] = json.loads(ended.out)
    schema = schema_of(arguments[0])
    jsonschema_rs.validate(schema, document)
    assert document.keys() == schema["properties"].keys()
    assert document["as_of"] == {"offset": document["as_of"]["offset"], "time": None}, "files answer at no time"


OLD = schema_of("topics list")


def changed(change: str) -> dict[str, Any]:
    """The schema of topics after a change of the model."""
    new: dict[str, Any] = json.loads(json.dumps(OLD))
    topic = new["$defs"]["TopicSummary"]
    if change == "a field goes":
        del topic["properties"]["partitions"]
    elif change == "a field may be missing":
        topic["required"].remove("partitions")
    elif change == "a number becomes a text":
        topic["properties"]["partitions"]["type"] = "string"
    elif change == "a field may be null":
        topic["properties"]["partitions"] = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    elif change == "a list becomes one thing":
        new["properties"]["topics"] = {"$ref": "#/$defs/TopicSummary"}
    elif change == "a field comes":
        topic["properties"]["colour"] = {"type": "string"}
        topic["required"].append("colour")
    elif change == "other words":
        topic["description"] = "Something else."
    return new


@pytest.mark.parametrize(
    ("change", "is_broken"),
    [
        ("a field goes", True), ("a field may be missing", True), ("a number becomes a text", True),
        ("a field may be null", True), ("a list becomes one thing", True), ("a field comes", False),
        ("other words", False), ("nothing", False),
    ],
)  # fmt: skip
def test_change_that_an_older_reader_does_not_understand_is_found(change: str, is_broken: bool) -> None:
    assert bool(broken_promises(OLD, changed(change))) == is_broken


def test_broken_promise_is_not_written_before_the_version_grows(tmp_path: Path) -> None:
    name = file_name("topics list")
    assert write(tmp_path, {name: OLD}) == []
    before = (tmp_path / name).read_bytes()
    new = changed("a field goes")
    assert write(tmp_path, {name: new}) == [f"{name}: /topics/*/partitions is not what it was"]
    assert (tmp_path / name).read_bytes() == before
    assert complaints(tmp_path, {}) == [f"{name}: the command has no answer any more"]
    new["properties"]["schema_version"]["const"] += 1
    assert write(tmp_path, {name: new}) == []
    assert json.loads((tmp_path / name).read_text(encoding="utf-8")) == new
