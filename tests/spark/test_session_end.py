"""How a session ends: nothing of it is left, however it came to its end."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pipeline.scratch import remove_dead
from tests.spark.processes import QUICK_JAVA, children, descendants, is_alive
from tests.waiting import eventually_sync

#: Starts a job that never ends, through the command's own entry, and tells by a file that a worker is at it.
_ENDLESS = """
import sys, threading
from pathlib import Path
import typer
from pipeline.session import SessionSettings, spark_session
from scripts.cli.__main__ import run

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


@contextlib.contextmanager
def endless_job(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, set[int]]]:
    """Yield a job that is at work, its JVM, and all that it started; nothing of it may be left afterwards."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, tmp_path / "started", "--", *QUICK_JAVA],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        started = {job.pid}
        try:
            eventually_sync(
                lambda: (tmp_path / "started").exists() or job.poll() is not None, "a worker is at it", deadline_s=500
            )
            assert job.poll() is None, job.communicate()
            started = descendants(job.pid)
            (jvm,) = children(job.pid)
            assert len(started) >= 3  # the JVM, the daemon of the Python workers, a worker
            yield job, jvm, started
            eventually_sync(lambda: not any(map(is_alive, started)), "all processes have ended", deadline_s=60)
        finally:
            for pid in started | {job.pid}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    if job.returncode != -signal.SIGKILL:
        assert list(scratch.iterdir()) == []


def test_job_that_is_interrupted_ends_in_silence_and_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a job: exit code 130, no traceback, no process, no temporary file."""
    with endless_job(tmp_path) as (job, _, _):
        job.send_signal(signal.SIGINT)
        assert (*job.communicate(timeout=60), job.returncode) == ("", "", 130)


def test_job_whose_java_dies_says_so_in_one_sentence(tmp_path: Path) -> None:
    """What a machine without memory does."""
    with endless_job(tmp_path) as (job, jvm, _):
        os.kill(jvm, signal.SIGKILL)
        assert (*job.communicate(timeout=60), job.returncode) == (
            "",
            "quorate: Spark's Java process died (exit code -9): was it killed, or the machine out of memory?\n",
            1,
        )


def test_job_that_is_killed_takes_its_java_and_its_workers_along(tmp_path: Path) -> None:
    """Its temporary files are removed by the next job's start, for which a living job's are taboo."""
    scratch = tmp_path / "scratch"
    with endless_job(tmp_path) as (job, _, _):
        remove_dead(scratch)
        assert len(list(scratch.iterdir())) == 1
        job.kill()
    assert len(list(scratch.iterdir())) == 1
    remove_dead(scratch)
    assert list(scratch.iterdir()) == []
