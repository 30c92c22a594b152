"""A standalone Spark cluster of processes on loopback: to see that a job runs on one, and how it takes a dead worker.

Its state is a directory for its owner alone: `cluster.json` with address and processes, `spark.conf` with the secret
that whoever takes part has to show, for each process a log, for each worker its files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from quorate.metadata_log.new_files import open_new
from quorate.pipeline.errors import ClusterFailed
from quorate.pipeline.spark.java import HANDS_ON, find_java, home_for_spark
from quorate.pipeline.spark.private_settings import write_cluster_settings
from quorate.pipeline.spark.spark_home import make_spark_home

_STATE_FILE: Final = "cluster.json"
#: Settings of all that takes part, jobs included.
PRIVATE_SETTINGS: Final = "spark.conf"
_LOOPBACK: Final = "127.0.0.1"

#: From the start of a JVM to its word that it is ready; minutes where other programs have the cores.
_READY_S_MAX: Final = 600
#: A process that was told to end is killed after this time.
_END_S_MAX: Final = 15
_LOOK_S: Final = 0.1

_ADDRESS: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile(r"(Successfully registered) with master")


@dataclass(frozen=True, slots=True)
class ClusterProcess:
    """One process of the cluster.

    Attributes:
        name: `master` or `worker-N`. start: the time the system gives its start; tells it from a later one of this id.
    """

    name: str
    pid: int
    start: str

    @property
    def is_alive(self) -> bool:
        return start_time(self.pid) == self.start


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """A cluster as its directory tells of it."""

    master_url: str
    processes: tuple[ClusterProcess, ...]


def start_time(pid: int) -> str | None:
    """Return when the process was started, in the system's own count; None where there is none, or a dead one."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]


def read_cluster(directory: Path) -> StandaloneCluster | None:
    """Return the cluster that was started in this directory and not stopped; None where there is none."""
    try:
        state = json.loads((directory / _STATE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return StandaloneCluster(state["master_url"], tuple(ClusterProcess(**process) for process in state["processes"]))


def start_cluster(directory: Path, workers: int, cores: int, memory: str) -> StandaloneCluster:
    """Start a master and its workers, and return when all workers are registered.

    Args:
        directory: for its state; is made.
        cores, memory: of each worker; memory as Spark takes it, `1g`.

    Raises:
        ClusterFailed: there is one already, or a process did not come up; then none is left.
        JavaNotFound: no Java runs Spark.
    """
    found = read_cluster(directory)
    if found is not None:
        raise ClusterFailed(f"{directory}: a cluster was started there already ({found.master_url}): stop it first")
    java = find_java()
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    write_cluster_settings(directory / PRIVATE_SETTINGS)
    shutil.rmtree(directory / "java", ignore_errors=True)
    # Once, before anything runs: the links are not to change under a process that loads classes by them.
    homes = {"JAVA_HOME": str(home_for_spark(java, directory)), "SPARK_HOME": str(make_spark_home(directory))}
    started: list[ClusterProcess] = []
    try:
        on_loopback = ("--host", _LOOPBACK, "--port", "0", "--webui-port", "0")
        where = (*on_loopback, "--properties-file", str(directory / PRIVATE_SETTINGS))
        url = _start(started, directory, homes, _ADDRESS, "master", "master.Master", *where)
        for number in range(1, workers + 1):
            name = f"worker-{number}"
            size = ("--cores", str(cores), "--memory", memory, "--work-dir", str(directory / name / "work"))
            _start(started, directory, homes, _REGISTERED, name, "worker.Worker", *where, *size, url)
    except BaseException:
        _end(started)
        raise
    cluster = StandaloneCluster(url, tuple(started))
    unfinished = directory / f"{_STATE_FILE}.part"
    with open_new(unfinished) as file:
        file.write(json.dumps(asdict(cluster), indent=2).encode())
    unfinished.rename(directory / _STATE_FILE)
    return cluster


def stop_cluster(directory: Path) -> StandaloneCluster | None:
    """End all processes of the cluster that are still alive, and return what it was; None where there is none."""
    cluster = read_cluster(directory)
    if cluster is not None:
        _end(cluster.processes)
        (directory / _STATE_FILE).unlink()
    return cluster


def _start(
    started: list[ClusterProcess],
    directory: Path,
    homes: Mapping[str, str],
    ready: re.Pattern[str],
    name: str,
    program: str,
    *arguments: str,
) -> str:
    """Start one process and return what its log says when it is ready."""
    local = directory / name / "local"
    local.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name}.log"
    variables = {
        **homes,
        # What is not said on the command line binds to it: the web pages, the executors.
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_LOCAL_DIRS": str(local),
        # It would listen at a port of its own, the same for every cluster.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(HANDS_ON),
    }
    with log.open("wb") as output:
        # A session of its own: Ctrl-C in the terminal is not meant for it.
        process = subprocess.Popen(
            [Path(homes["SPARK_HOME"], "bin", "spark-class"), f"org.apache.spark.deploy.{program}", *arguments],
            env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    started.append(ClusterProcess(name, process.pid, start_time(process.pid) or ""))

    def look() -> str | None:
        said = ready.search(log.read_text(encoding="utf-8", errors="replace"))
        if said is None and process.poll() is not None:
            raise ClusterFailed(f"{name} of the Spark cluster ended with exit code {process.returncode}: see {log}")
        return said and said[1]

    return _wait_for(look) or _not_ready(name, log)


def _not_ready(name: str, log: Path) -> str:
    raise ClusterFailed(f"{name} of the Spark cluster was not ready within {_READY_S_MAX} s: see {log}")


def _wait_for(look: Callable[[], str | None], within_s: float = _READY_S_MAX) -> str | None:
    """Look until there is something to see, and return it; None when the time is over."""
    end = time.monotonic() + within_s
    pause = threading.Event()
    while (seen := look()) is None and time.monotonic() < end:
        pause.wait(_LOOK_S)
    return seen


def _end(processes: tuple[ClusterProcess, ...] | list[ClusterProcess]) -> None:
    """End these processes, workers before their master; those that do not listen are killed."""
    for process in reversed(processes):
        if process.is_alive:
            os.kill(process.pid, signal.SIGTERM)

    def look() -> str | None:
        return None if any(process.is_alive for process in processes) else "ended"

    if _wait_for(look, _END_S_MAX) is None:
        for process in processes:
            if process.is_alive:
                os.kill(process.pid, signal.SIGKILL)
