"""What a job cannot do is refused in a sentence, before Spark is started, and nothing is written."""

import re
from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli import pipeline
from quorate.scripts.cli.pipeline_jobs.running import JobRun, job_command


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def started(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(JobRun, "session", started)
    monkeypatch.chdir(tmp_path)


def refusal(name: str, *arguments: str) -> str:
    """The sentence with which a job is refused."""
    app = typer.Typer()
    for job in pipeline.JOBS:
        app.command(job.__name__.replace("_", "-"))(job_command(job))
    seen = CliRunner().invoke(app, [name, *arguments])
    assert isinstance(seen.exception, QuorateError), (seen.output, seen.exception)
    assert list(Path.cwd().iterdir()) == []
    return str(seen.exception)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--append"], "--append goes on with Delta tables: give --table-format delta, too"),
        (
            ["--append", "--table-format", "delta", "--html", "page.html"],
            "--html is made of all that is read, and --append reads only what is new: leave one out",
        ),
    ],
)
def test_history_that_cannot_be_gone_on_with(arguments: list[str], sentence: str) -> None:
    assert refusal("history", "log", "--out", "out", *arguments) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["history", "log", "--out", "s3://b/out", "--table-format", "delta"],
            "^s3://b/out: Delta tables are written",
        ),
        (
            ["replay", "log", "--out", "gs://b/out", "--table-format", "delta"],
            "^gs://b/out: Delta tables are written",
        ),
        (
            ["history", "log", "--out", "s3a://b/out", "--table-format", "delta", "--append"],
            "^s3a://b/out: Delta tables are written to the local file system only",
        ),
        (["stream", "log", "--out", "s3://b/table"], "^s3://b/table: a URI of scheme s3, and only paths of the local"),
        (["history", "log", "--out", "out", "--html", "s3://b/page"], "^s3://b/page: a URI of scheme s3, and only"),
        (["audit", "log", "--certificate", "abfs://c@a/x"], "^abfs://c@a/x: a URI of scheme abfs, and only"),
        (["capacity", "log", "--plan", "hdfs://n/plan"], "^hdfs://n/plan: a URI of scheme hdfs, and only"),
        (["capacity", "log", "--tables", "ftp://h/t"], "^ftp://h/t: is neither a path nor a URI that can be read"),
        (
            ["compare", "dbfs:/a"],
            "^dbfs:/a: is neither a path nor a URI that can be read: those begin with file:, s3://",
        ),
    ],
)
def test_place_that_a_job_cannot_use(arguments: list[str], sentence: str) -> None:
    """It is never taken for the name of a local directory."""
    assert re.match(sentence, refusal(*arguments))


@pytest.mark.parametrize("option", ["--at=5", "--digests=digests", "--html=page.html"])
def test_audit_of_several_clusters_takes_nothing_that_is_of_one(option: str) -> None:
    assert refusal("audit", "a", "b", "--mixed", option) == (
        "--at, --digests and --html are of one audit, and --mixed is for several: leave one out"
    )
