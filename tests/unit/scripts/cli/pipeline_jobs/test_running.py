"""How a job becomes a command: its own parameters and the options that all jobs share."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from quorate.pipeline.files.uris import local
from quorate.scripts.cli import pipeline
from quorate.scripts.cli.pipeline_jobs import running
from quorate.scripts.cli.pipeline_jobs.audit import verify_certificate
from quorate.scripts.cli.pipeline_jobs.pack import pack
from quorate.scripts.cli.pipeline_jobs.running import ExtraMissing, Inputs, JobRun, job_command


def count(
    run: JobRun, inputs: Inputs, at: Annotated[int | None, typer.Option("--at", help="Before it.")] = None
) -> None:
    """Count.

    Example: quorate pipeline count DIR
    """
    run.show([f"{[str(path) for path in inputs]} {at} {run.master} {run.driver_memory}"], {"at": at})


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(job_command(count))
    return app


def test_job_gets_its_own_parameters_and_the_shared_options(app: typer.Typer) -> None:
    seen = CliRunner().invoke(app, ["a", "b", "--at", "3", "--master", "local[2]"])

    assert (seen.output, seen.exit_code) == ("['a', 'b'] 3 local[2] None\n", 0)


def test_job_shows_json_where_it_is_asked_for(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["a", "--json"]).output == '{\n  "at": null\n}\n'


def test_help_of_a_job_has_its_own_text_and_all_options(app: typer.Typer) -> None:
    seen = CliRunner().invoke(app, ["--help"]).output

    assert [text for text in ("Count.", "--at", "--master", "--driver-memory", "--json") if text not in seen] == []


def test_job_without_the_extra_says_what_to_install(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package has the command always, and Spark only as an extra."""
    monkeypatch.setattr(running, "_EXTRA_MODULE", "a_module_that_is_not_there")

    seen = CliRunner().invoke(app, ["a"])

    assert isinstance(seen.exception, ExtraMissing)
    assert "pip install 'quorate[pipeline]'" in str(seen.exception)


@pytest.mark.parametrize("job", pipeline.JOBS)
def test_every_job_teaches_with_an_example_of_itself(job: Callable[..., None]) -> None:
    name = job.__name__.replace("_", "-")
    assert f"Example: quorate pipeline {name}" in str(job.__doc__)


@pytest.mark.parametrize("job", [*pipeline.JOBS, pack, verify_certificate])
def test_every_path_of_a_job_may_not_be_a_uri_of_a_store(job: Callable[..., None]) -> None:
    """`Path("s3a://bucket/x")` is the local directory `s3a:`; logs are given as they are, and looked up by `inputs`."""
    hints = {**get_type_hints(job, include_extras=True), **get_type_hints(JobRun, include_extras=True)}
    parsers = {
        name: hint.__metadata__[0].parser
        for name, hint in hints.items()
        if hasattr(hint, "__metadata__") and "Path" in str(hint.__origin__)
    }

    assert set(parsers.values()) == {local}, parsers


def test_module_of_a_job_imports_no_spark(tmp_path: Path) -> None:
    """`quorate pipeline --help` must not need the extra, nor wait for it."""
    program = (
        "import sys, quorate.scripts.cli.pipeline; print(sorted({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
