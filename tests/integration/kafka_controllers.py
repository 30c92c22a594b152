"""Controllers of real Apache Kafka as processes on loopback, over directories that we made, and what they answer."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.metadata_log.directory.reader import find_files
from quorate.metadata_log.errors import StorageError
from quorate.snapshots.checkpoints.whole_checkpoints import load_checkpoint
from quorate.snapshots.image.image import MetadataImage
from tests.waiting import eventually_sync

#: A controller starts in seconds: the least that compiles, and a small heap.
JAVA = ("java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dorg.apache.logging.log4j.level=WARN")
STOP_SECONDS_MAX = 20
TOOL_SECONDS_MAX = 60


@dataclass(frozen=True)
class KafkaVoter:
    """One controller that is to run."""

    id: int
    port: int
    directory: Path


@dataclass(frozen=True)
class RunningKafka:
    """Controllers that run."""

    jars: Path
    voters: tuple[KafkaVoter, ...]
    processes: tuple[subprocess.Popen[bytes], ...]

    def newest_snapshot(self, voter: KafkaVoter, above: int, deadline: float) -> MetadataImage:
        """The state in a snapshot that the controller wrote itself, of an offset above the given one."""

        def look() -> MetadataImage | None:
            self.check()
            files = [file for file in find_files(voter.directory) if file.is_checkpoint and (file.offset or 0) > above]
            try:
                return load_checkpoint(files[-1]) if files else None
            except StorageError:
                return None  # removed, or not whole yet

        what = f"controller {voter.id} has written a snapshot above {above}"
        image = eventually_sync(look, what, deadline - time.monotonic())
        assert image is not None
        return image

    def check(self) -> None:
        """Fail with what a controller said, if one has ended."""
        for voter, process in zip(self.voters, self.processes, strict=True):
            assert process.poll() is None, f"controller {voter.id} ended: {log_path(voter).read_text()[-3_000:]}"

    def quorum_status(self) -> dict[str, Any]:
        """What `kafka-metadata-quorum describe --status` prints."""
        done = subprocess.run(
            [
                *JAVA,
                "-cp",
                f"{self.jars}/*",
                "org.apache.kafka.tools.MetadataQuorumCommand",
                "--bootstrap-controller",
                f"127.0.0.1:{self.voters[0].port}",
                "describe",
                "--status",
            ],
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=TOOL_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout[-1_000:] + done.stderr[-2_000:]
        facts = dict(re.findall(r"^(\w+):\s+(.*)$", done.stdout, re.MULTILINE))
        return {name: json.loads(value) if value[:1] in "[{" else value for name, value in facts.items()}


def log_path(voter: KafkaVoter) -> Path:
    """Where a controller's log goes."""
    return voter.directory.parent / f"kafka-{voter.id}.log"


@contextmanager
def running(jars: Path, voters: tuple[KafkaVoter, ...], *, is_static: bool) -> Iterator[RunningKafka]:
    """The controllers, as long as the block runs. All of them are stopped then, whatever happens."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for voter in voters:
            settings = voter.directory.parent / f"kafka-{voter.id}.properties"
            settings.write_text(_settings(voter, voters, is_static=is_static), encoding="utf-8")
            with log_path(voter).open("wb") as log:
                command = [*JAVA, "-cp", f"{jars}/*", "kafka.Kafka", str(settings)]
                processes.append(
                    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
                )
        yield RunningKafka(jars, voters, tuple(processes))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _settings(voter: KafkaVoter, voters: tuple[KafkaVoter, ...], *, is_static: bool) -> str:
    if is_static:
        quorum = ("controller.quorum.voters", ",".join(f"{one.id}@127.0.0.1:{one.port}" for one in voters))
    else:
        quorum = ("controller.quorum.bootstrap.servers", ",".join(f"127.0.0.1:{one.port}" for one in voters))
    settings = (
        ("process.roles", "controller"),
        ("node.id", str(voter.id)),
        ("controller.listener.names", "CONTROLLER"),
        ("listeners", f"CONTROLLER://127.0.0.1:{voter.port}"),
        ("log.dirs", str(voter.directory)),
        quorum,
        # Nobody plays the brokers: their sessions must not end, and nothing else may change by itself.
        ("broker.session.timeout.ms", "3600000"),
        ("auto.leader.rebalance.enable", "false"),
        ("metadata.log.max.record.bytes.between.snapshots", "1"),
    )
    return "".join(f"{name}={value}\n" for name, value in settings)
