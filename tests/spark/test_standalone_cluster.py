"""A job on a standalone cluster of three processes, a worker of it killed while it is at work, and `spark-submit`."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from quorate.pipeline.spark.standalone import PRIVATE_SETTINGS, StandaloneCluster, read_cluster
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.integration.answers_by_schema import check_answer
from tests.spark.processes import QUICK_JAVA, descendants, is_alive
from tests.spark.strangers import SECRET_WANTED, answer_to_a_stranger
from tests.waiting import eventually_sync

#: For the six processes of Java.
_QUICKLY = {**os.environ, "JDK_JAVA_OPTIONS": " ".join(QUICK_JAVA)}

#: With tasks of the least size, enough of them that most are still to be done when the first are.
_RECORDS, _TASK_BYTES = 30_000, 65_536

_ROOT = Path(__file__).parents[2]
_STATIC_LOG = _ROOT / "tests/data/kafka/static/m2/log"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A metadata directory with months of history."""
    making = (
        "-m",
        "quorate.scripts.generated_history.generate",
        "--records",
        str(_RECORDS),
        "--segments",
        "6",
        "--out",
    )
    subprocess.run([sys.executable, *making, tmp_path / "log"], check=True, capture_output=True)
    return tmp_path / "log"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    """A master and two workers with a core each, started and ended as a user does it."""
    directory = tmp_path / "cluster"
    command = (sys.executable, "-m", "quorate.scripts.spark_cluster")
    subprocess.run([*command, "start", "--dir", directory], env=_QUICKLY, check=True, capture_output=True)
    found = read_cluster(directory)
    assert found is not None
    yield found
    subprocess.run([*command, "stop", "--dir", directory], check=True, capture_output=True)
    assert not any(process.is_alive for process in found.processes)
    assert read_cluster(directory) is None


def test_audit_on_a_cluster_that_loses_a_worker_half_way_has_the_same_result(
    tmp_path: Path, log: Path, cluster: StandaloneCluster
) -> None:
    """What the dead worker had done already is lost with it, and has to be done again by the other."""
    victim = cluster.processes[1]
    command = ("-m", "quorate.scripts.cli", "pipeline", "audit", log, "--json", "--task-bytes", str(_TASK_BYTES))
    private = tmp_path / "cluster" / PRIVATE_SETTINGS
    assert SECRET_WANTED in answer_to_a_stranger(cluster.master_url.removeprefix("spark://"))
    where = ("--master", cluster.master_url, "--spark-conf", private)
    how = ("--driver-memory", "512m", "--spark-log", tmp_path / "spark.log")
    with subprocess.Popen(
        [sys.executable, *command, *where, *how],
        env=_QUICKLY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        files = tmp_path / "cluster" / victim.name / "local"
        eventually_sync(
            lambda: any(files.rglob("shuffle_*.data")) or job.poll() is not None, "a task is done", deadline_s=600
        )
        assert job.poll() is None, job.communicate()
        _nobody_else_reads_the_secret(private, {os.getpid(), *(process.pid for process in cluster.processes)})
        for pid in {victim.pid} | descendants(victim.pid):
            with suppress(ProcessLookupError):  # a child that lived for a moment
                os.kill(pid, signal.SIGKILL)
        out, errors = job.communicate(timeout=600)

    assert (job.returncode, errors) == (0, "")
    check_answer(["pipeline", "audit", "--json"], out)
    found = json.loads(out)
    assert found["verdict"] == "passed"
    assert found["state"]["digest"] == digest_image(load_image(log, None)).text
    assert "Lost executor" in (tmp_path / "spark.log").read_text()

    _submitted_audit_fails_by_its_exit_code(tmp_path, cluster.master_url, private)


def _nobody_else_reads_the_secret(private: Path, processes: set[int]) -> None:
    secret = private.read_text().split()[-1].encode()
    all_of_them = processes.union(*map(descendants, processes))
    arguments = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in all_of_them if is_alive(pid)]
    assert sum(b"java" in line for line in arguments) > len(processes)
    assert not any(secret in line for line in arguments)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (private, private.parent)] == [0o600, 0o700]


def _submitted_audit_fails_by_its_exit_code(tmp_path: Path, master_url: str, private: Path) -> None:
    """`spark-submit`, with a path that is relative to where it was called, on what is left of the cluster."""
    packages, certificate, digests = (tmp_path / name for name in ("quorate.zip", "certificate.json", "digests"))
    subprocess.run(
        [sys.executable, "-m", "quorate.scripts.cli", "pipeline", "pack", packages], check=True, capture_output=True
    )
    digests.write_text(json.dumps({"offset": 5_000, "digest": "0" * 64}))
    variables = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "TMPDIR": str(tmp_path)}
    settings = ("spark.ui.enabled=false", "spark.sql.adaptive.enabled=false", "spark.default.parallelism=2")
    job = subprocess.run(
        [
            *(Path(sys.executable).with_name("spark-submit"), "--master", master_url, "--driver-memory", "512m"),
            *("--properties-file", private),
            *(argument for setting in settings for argument in ("--conf", setting)),
            *("--py-files", packages, _ROOT / "scripts/spark_job.py", "audit", os.path.relpath(_STATIC_LOG)),
            *("--digests", digests, "--certificate", certificate),
        ],
        env=_QUICKLY | variables, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert job.returncode == 1, job.stderr
    found = json.loads(certificate.read_text())
    assert (found["verdict"], [one["holds"] for one in found["comparisons"]]) == ("failed", [True, True, True, False])
