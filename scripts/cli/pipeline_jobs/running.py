"""Shared by all jobs: their options, the session they run in, the display of their results.

A job is a function with a `JobRun` among its parameters; `job_command` makes the command of it, which has the options
of `JobRun` besides the job's own. The function imports Spark, and what uses it, when it is called.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from quorate.metadata_log.errors import QuorateError
from quorate.pipeline.files.storage import checked
from quorate.pipeline.files.uris import local
from quorate.pipeline.tables.table_format import TableFormat
from quorate.scripts.cli.option_groups import command_of
from quorate.scripts.terminal.output import reader_may_leave

if TYPE_CHECKING:
    from quorate.pipeline.spark.session import SparkSession

#: The argument of a job that reads logs.
Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Metadata directories, segments, checkpoints, and archives of them (.gz, .zip, .tar.gz); or s3:// URIs.",
        show_default=False,
    ),
]

Mixed = Annotated[bool, typer.Option("--mixed", help="The paths may hold several clusters.")]

#: Options of the jobs that write pages or tables.
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", parser=local, help="Write one self-contained page with tables and plots."),
]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", parser=checked, help="Write the result's tables there, as Parquet."),
]

WrittenAs = Annotated[
    TableFormat, typer.Option("--table-format", help="Directories of Parquet files, or Delta tables of the same files.")
]

#: What is looked for to know whether the extra is there: the one that nothing else of ours brings.
_EXTRA_MODULE: Final = "pyspark"


class ExtraMissing(QuorateError):
    """The packages of the pipeline are not installed."""

    def __init__(self) -> None:
        super().__init__(
            "the pipeline needs Spark, which is not installed: pip install 'quorate[pipeline]' "
            "(in a checkout scripts/quorate brings it in)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """The options that every job has; their names, defaults and help texts stand here and nowhere else."""

    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="Where it runs: local[N], local[*], spark://HOST:PORT.")
    ] = "local[*]"
    driver_memory: Annotated[
        str | None,
        typer.Option(
            "--driver-memory",
            metavar="SIZE",
            help="Heap of Spark's driver, as 2g. Default: a third of the machine's memory, 4 GB at most.",
        ),
    ] = None
    spark_conf: Annotated[
        Path | None,
        typer.Option(
            "--spark-conf",
            metavar="FILE",
            envvar="QUORATE_SPARK_CONF",
            parser=local,
            help="Spark settings that only you may read, a name, a blank and a value a line: the secret of a cluster.",
            show_default=False,
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False
    spark_log: Annotated[
        Path | None,
        typer.Option("--spark-log", metavar="FILE", parser=local, help="Keep what Spark itself has to say."),
    ] = None

    @contextmanager
    def session(
        self, name: str, *, hands_on: bool = False, conf: Mapping[str, str] | None = None
    ) -> Iterator[SparkSession]:
        """A Spark session for the job of this name, with its progress on the terminal; ended with the block.

        Args:
            name: what Spark calls the job. conf: Spark settings of the job's own.
            hands_on: its records never reach the JVM.

        Raises:
            PipelineError: Spark did not start, or the job failed.
        """
        from quorate.pipeline.spark.java import HANDS_ON
        from quorate.pipeline.spark.session import SessionSettings, spark_session
        from quorate.scripts.cli.pipeline_jobs.progress import stage_progress

        settings = SessionSettings(
            name=name,
            master=self.master,
            driver_memory=self.driver_memory,
            log=self.spark_log,
            java_options=HANDS_ON if hands_on else (),
            conf=conf or {},
            private_conf=self.spark_conf,
        )
        with stage_progress() as progress, spark_session(settings) as spark, progress.of(spark):
            yield spark

    def show(self, lines: list[str], document: Mapping[str, Any]) -> None:
        """Show a job's result: lines for people, or with `--json` the document."""
        with reader_may_leave():
            if self.as_json:
                json.dump(document, sys.stdout, ensure_ascii=False, indent=2)
                sys.stdout.write("\n")
            else:
                sys.stdout.writelines(f"{line}\n" for line in lines)


def workers_line(processor_seconds: Mapping[str, float], mb_max: int) -> str:
    """The use of the workers' time, for people."""
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in processor_seconds.items())
    return f"Processor seconds of the workers: {spent}; the largest worker took {mb_max:,} MB."


def job_command(job: Callable[..., None]) -> Callable[..., None]:
    """Return the command of a job, which is refused in a sentence where Spark is not installed."""

    @functools.wraps(job)
    def asked(**values: Any) -> None:
        if find_spec(_EXTRA_MODULE) is None:
            raise ExtraMissing
        job(**values)

    return command_of(asked)
