"""What a job cannot do is refused in a sentence, before Spark is started, and nothing is written."""

from pathlib import Path
from typing import NoReturn

import pytest
import typer
from typer.testing import CliRunner

from metadata_log.errors import QuorateError
from scripts.cli import pipeline
from scripts.cli.pipeline_jobs.running import Run, job_command


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def started(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(Run, "session", started)
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


@pytest.mark.parametrize("option", ["--at=5", "--digests=digests", "--html=page.html"])
def test_audit_of_several_clusters_takes_nothing_that_is_of_one(option: str) -> None:
    assert refusal("audit", "a", "b", "--mixed", option) == (
        "--at, --digests and --html are of one audit, and --mixed is for several: leave one out"
    )
