"""How a session ends: nothing of it is left, however it came to its end."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quorate.pipeline.spark.scratch import remove_dead
from tests.spark.processes import QUICK_JAVA, children, descendants, is_alive
from tests.waiting import eventually_sync

#: Starts a job that never ends, through the command's own entry, and tells by a file that a worker is at it.
_ENDLESS = """
import sys, threading
from pathlib import Path
import typer
from quorate.pipeline.spark.session import SessionSettings, spark_session
from quorate.scripts.terminal.command_line import run

app = typer.Typer()

@app.command()
def endless(started: Path, java_options: list[str]):
    def wait(batches):
        started.touch()
        threading.Event().wait()
        yield from batches
    settings = SessionSettings(
        name="endless", master="local[2]", driver_memory="512m", java_options=tuple(java_options)
    )
    with spark_session(settings) as spark:
        spark.range(2, numPartitions=2).mapInArrow(wait, "id long").collect()

run(app, sys.argv[1:])
"""


@dataclass(frozen=True)
class Job:
    """One that was started in a directory of its own."""

    process: subprocess.Popen[str]
    directory: Path

    @property
    def scratch(self) -> Path:
        """Where its temporary files are."""
        return self.directory / "scratch"

    @property
    def jvm(self) -> int:
        (jvm,) = children(self.process.pid)
        return jvm

    def is_at_work(self) -> bool:
        """Or has ended."""
        return (self.directory / "started").exists() or self.process.poll() is not None


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Job]]:
    """One for each test. They start side by side: a start takes long, and waits for one thing after another."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(_job(tmp_path_factory.mktemp("job"))) for _ in range(3)]


@contextlib.contextmanager
def _job(directory: Path) -> Iterator[Job]:
    """Start one; it and what it started are gone afterwards."""
    (directory / "scratch").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, directory / "started", "--", *QUICK_JAVA],
        env={**os.environ, "TMPDIR": str(directory / "scratch")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Job(process, directory)
        finally:
            if process.poll() is None:
                _kill(descendants(process.pid) | {process.pid})


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def ending_of_one(jobs: list[Job]) -> Iterator[Job]:
    """Yield a job that is at work; nothing that it started may be left afterwards."""
    job = jobs.pop()
    eventually_sync(job.is_at_work, "a worker is at it", deadline_s=500)
    assert job.process.poll() is None, job.process.communicate()
    started = descendants(job.process.pid)
    assert len(started) >= 3  # the JVM, the daemon of the Python workers, a worker
    try:
        yield job
        eventually_sync(lambda: not any(map(is_alive, started)), "all processes have ended", deadline_s=60)
    finally:
        _kill(set(filter(is_alive, started)))


def test_job_that_is_interrupted_ends_in_silence_and_leaves_nothing(jobs: list[Job]) -> None:
    """Ctrl-C in the middle of a job: exit code 130, no traceback, no process, no temporary file."""
    with ending_of_one(jobs) as job:
        job.process.send_signal(signal.SIGINT)
        assert (*job.process.communicate(timeout=60), job.process.returncode) == ("", "", 130)
    assert list(job.scratch.iterdir()) == []


def test_job_whose_java_dies_says_so_in_one_sentence(jobs: list[Job]) -> None:
    """What a machine without memory does."""
    with ending_of_one(jobs) as job:
        os.kill(job.jvm, signal.SIGKILL)
        assert (*job.process.communicate(timeout=60), job.process.returncode) == (
            "",
            "quorate: Spark's Java process died (exit code -9): was it killed, or the machine out of memory?\n",
            1,
        )
    assert list(job.scratch.iterdir()) == []


def test_job_that_is_killed_takes_its_java_and_its_workers_along(jobs: list[Job]) -> None:
    """Its temporary files are removed by the next job's start, for which a living job's are taboo."""
    with ending_of_one(jobs) as job:
        remove_dead(job.scratch)
        assert len(list(job.scratch.iterdir())) == 1
        job.process.kill()
    assert len(list(job.scratch.iterdir())) == 1
    remove_dead(job.scratch)
    assert list(job.scratch.iterdir()) == []
