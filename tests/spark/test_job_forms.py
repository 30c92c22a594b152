"""What the jobs of `quorate pipeline` write with `--json` is of the form that their schemas tell, field by field."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pyspark.sql import SparkSession

from quorate.metadata_log.records.records import PartitionRecord
from quorate.metadata_log.segments.segment_files import segment_name
from quorate.pipeline.history.plan import HistoryOptions
from quorate.pipeline.jobs.history import make_history
from quorate.scripts.cli.pipeline_jobs.running import JobRun
from quorate.scripts.cli.shell.answer_schemas import schema_of
from quorate.scripts.cli.shell.job_forms import JOB_FORMS
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.pipeline_logs import BEHEADED_LOG, KAFKA_LOG, LogWriter
from tests.spark.test_audit import rewritten
from tests.spark.test_drill_report import store
from tests.spark.test_incidents import whole_log


class Material(NamedTuple):
    """Logs, and what was made of them. Texts are paths."""

    #: With much that went wrong, and its history as tables.
    whole: str
    tables: str
    #: Of another cluster; one checkpoint is not what its log adds up to.
    small: str
    #: Of a third one; a byte of it is another.
    damaged: str
    #: Of a fourth one; it has no beginning.
    headless: str
    sizes: str
    sign_key: str
    drills: str


@pytest.fixture(scope="module")
def material(spark: SparkSession, kafka_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Material:
    at = tmp_path_factory.mktemp("material")
    made = Material(*(str(at / name) for name in Material._fields))
    Path(made.whole).mkdir()
    whole_log(kafka_data / "static", Path(made.whole))
    make_history(spark, [made.whole], made.tables, HistoryOptions())

    shutil.copytree(kafka_data / "dynamic-small" / "m1" / "log", made.small)
    rewritten(sorted(Path(made.small).glob("*/*.checkpoint"))[1], with_another_isr)
    writer = LogWriter(Path(made.damaged), "cluster-d")
    writer.append_small(3)
    data = bytearray(writer.segment.read_bytes())
    data[100] ^= 1
    writer.segment.write_bytes(data)
    writer = LogWriter(Path(made.headless), "cluster-h")
    writer.append_small(3)
    writer.segment.rename(writer.directory / segment_name(100))

    Path(made.sizes).write_text("under_score,0,1000\n")
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(made.sign_key).write_bytes(key)
    for number in range(2):
        store(Path(made.drills) / str(number), number, 40.0)
    return made


def with_another_isr(record: Any) -> Any:
    is_meant = isinstance(record, PartitionRecord) and record.partition_id == 1 and len(record.isr) > 1
    return replace(record, isr=record.isr[:1]) if is_meant else record


#: Of each job the words that make it tell all that it can, of the material and a directory that is empty.
WORDS: dict[str, Callable[[Material, Path], list[list[str]]]] = {
    "pipeline audit": lambda m, _: [
        [m.small, "--sign-key", m.sign_key],
        [m.small, str(BEHEADED_LOG), m.damaged, m.headless, "--mixed"],
    ],
    "pipeline capacity": lambda m, at: [
        [str(KAFKA_LOG)],
        [m.whole, "--tables", m.tables, "--at", "10996", "--sizes", m.sizes, "--plan", str(at / "plan")],
    ],
    "pipeline check": lambda _, at: [[]],
    "pipeline compare": lambda m, _: [
        [m.small, "--at-a", "47", "--at-b", "60"],
        [m.tables, m.small],
    ],
    "pipeline drill-report": lambda m, _: [[m.drills]],
    "pipeline history": lambda m, at: [
        [m.small, "--out", str(at / "plain")],
        [m.small, m.damaged, "--mixed", "--table-format", "delta", "--append", "--out", str(at / "delta")],
    ],
    "pipeline incidents": lambda m, _: [
        [m.whole, "--tables", m.tables],
        [m.whole, m.damaged, "--tables", m.tables, "--mixed"],
    ],
    "pipeline replay": lambda m, at: [
        [m.whole, "--at", "100", "--out", str(at / "early")],
        [str(BEHEADED_LOG), "--out", str(at / "state")],
    ],
    "pipeline stream": lambda m, at: [[m.small, "--now", "--uncommitted", "--out", str(at / "table")]],
}
#: Fields that no run fills: a plan that has problems is not shown.
EMPTY = {"pipeline capacity": {"PlanVerdict.problems"}}


@pytest.mark.parametrize("job", WORDS)
async def test_document_of_a_job_is_the_one_that_its_schema_tells(
    spark: SparkSession, material: Material, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs a command in a test holds its output against its schema (``tests.integration.commands``)."""
    monkeypatch.setattr(JobRun, "session", lambda *_, **__: nullcontext(spark))
    documents = []
    for words in WORDS[job](material, tmp_path):
        ended = await alone(*job.split(), *words, "--json")
        assert ended.code in (exit_codes.DONE, exit_codes.REFUSED), ended
        assert ended.out, ended.said
        documents.append(json.loads(ended.out))

    schema = schema_of(job)
    fields = {*fields_of(schema, schema.get("$defs", {}), documents)}
    assert {name for name, _ in fields} - {name for name, is_filled in fields if is_filled} == EMPTY.get(job, set())


def fields_of(
    schema: Mapping[str, Any], defined: Mapping[str, Any], values: Sequence[Any]
) -> Iterator[tuple[str, bool]]:
    """Every field of every part, and whether one of these values has there more than null or nothing."""
    if "$ref" in schema:
        schema = defined[schema["$ref"].rpartition("/")[2]]
    for form in schema.get("anyOf", ()):
        yield from fields_of(form, defined, values)
    fields = schema.get("properties", {})
    mine = [value for value in values if value.keys() == fields.keys()] if fields else []  # of several forms this one
    for name, field in fields.items():
        filled = [value[name] for value in mine if value[name] not in (None, [], {})]
        yield f"{schema['title']}.{name}", bool(filled)
        yield from fields_of(field, defined, filled)
    inside = schema.get("items", schema.get("additionalProperties"))
    if isinstance(inside, Mapping):
        parts = [part for value in values for part in (value.values() if isinstance(value, dict) else value)]
        yield from fields_of(inside, defined, parts)


def test_every_form_of_a_job_is_looked_at() -> None:
    assert JOB_FORMS.keys() == WORDS.keys()
