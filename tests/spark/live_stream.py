"""A live cluster under load and a stream of its log, both killed (kill -9) and started again, over and over.

As a program, for as many rounds as one likes: ``python -m tests.spark.live_stream ROUNDS``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

import pyarrow.dataset as ds

from quorate.controller.protocol.topics import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.tables.stream_table import StreamTable
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import controller_directory
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

_READY_S: Final = 120.0
_STEP_S: Final = 600.0
CONTROLLERS: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the stream's table holds in the end."""

    records: int
    steps: int
    #: Topics whose creation was acknowledged while all this went on.
    topics: int
    kills: int


class StreamProcess:
    """`quorate pipeline stream` in a session of its own, so that it can be killed with its JVM."""

    def __init__(self, directory: Path, table: Path, log: IO[bytes], *options: str) -> None:
        command = ["pipeline", "stream", str(directory), "--out", str(table), "--master", "local[1]", *options]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "quorate.scripts.cli", *command, "--driver-memory", "1g"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            # A JVM that lives for seconds: what takes time is its compiler.
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )

    def kill(self) -> None:
        """SIGKILL to the process and its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it gave up by itself."""
        return self._process.poll() is not None

    def finish(self) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(_STEP_S)


async def load(cluster: LocalCluster, acknowledged: list[str]) -> None:
    """Create topics one after another, whatever happens to the controllers."""
    for number in count():
        topic = CreatableTopic(name=f"load-{number}", num_partitions=20, replication_factor=1)
        with suppress(ApiError):
            reply = await cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
            acknowledged += [result.name for result in reply.topics if result.error_code == 0]


async def drill(work: Path, rounds: int) -> Outcome:
    """Kill both sides so many times at moments of their own choosing, then read the rest and compare with the logs."""
    table = StreamTable(work / "table")
    acknowledged: list[str] = []
    async with running_cluster(work / "cluster", CONTROLLERS, 1, is_secured=False) as cluster:
        directories = [controller_directory(cluster.directory, one) for one in cluster.plan.controllers]
        async with asyncio.TaskGroup() as group:
            loading = group.create_task(load(cluster, acknowledged))
            for number in range(rounds):
                await _round(cluster, directories[0], table, work / f"stream-{number}.log")
                print(f"round {number + 1}: {len(table.chunks())} steps, {len(acknowledged)} topics", flush=True)
            loading.cancel()
        await cluster.stop()
    with (work / "stream-end.log").open("wb") as log:
        process = StreamProcess(directories[0], table.path, log, "--now")
        code = await asyncio.to_thread(process.finish)
    assert code == 0, (work / "stream-end.log").read_text()[-3000:]
    _compare(table, directories)
    chunks = table.chunks()
    return Outcome(sum(chunk.records for chunk in chunks), len(chunks), len(acknowledged), rounds)


async def _round(cluster: LocalCluster, directory: Path, table: StreamTable, log_path: Path) -> None:
    """The stream gets on by two steps, then everything is killed, and the controllers start again."""
    wanted = len(table.chunks()) + 2
    with log_path.open("wb") as log:
        process = StreamProcess(directory, table.path, log, "--every", "0.2", "--max-records", "500")
        try:

            async def has_got_on() -> bool:
                nonlocal process
                if process.has_ended:  # Spark gives a worker ten seconds to start, whatever else the machine does
                    process = StreamProcess(directory, table.path, log, "--every", "0.2", "--max-records", "500")
                return len(table.chunks()) >= wanted

            await eventually(has_got_on, f"two steps of the stream, see {log_path}", _STEP_S)
        finally:
            process.kill()
            print(f"== {log_path.name}", log_path.read_text()[-3000:], sep="\n", flush=True)  # noqa: ASYNC240
    for controller in cluster.controllers.values():
        controller.kill()
    for controller in cluster.controllers.values():
        await controller.wait(_READY_S)
    await cluster.start()
    await cluster.wait_for_controllers(_READY_S)


def _compare(table: StreamTable, directories: list[Path]) -> None:
    """Every row is the record that all controllers hold at that offset, and every offset is there once."""
    columns = ["offset", "epoch", "type", "version"]
    rows = ds.dataset(table.path, format="parquet").to_table(columns=columns).to_pylist()
    rows.sort(key=lambda row: row["offset"])
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    for directory in directories:
        held = _records(directory)
        assert len(held) >= len(rows)
        assert [tuple(row.values()) for row in rows] == held[: len(rows)]


def _records(directory: Path) -> list[tuple[Any, ...]]:
    files = [file for file in find_files(directory) if not file.is_checkpoint]
    return [
        (one.offset, batch.header.epoch, SCHEMA_OF_CLASS[type(one.record)].name, one.version)
        for file in files
        for batch in iter_batches(file)
        for one in iter_records(batch.data)
    ]


def main() -> None:
    """The drill, with as many rounds as the argument says."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="quorate-live-") as work:
        outcome = asyncio.run(drill(Path(work), rounds))
    print(
        f"Cluster and stream were killed {outcome.kills} times; {outcome.topics} topics were created meanwhile.\n"
        f"The table holds {outcome.records} records in {outcome.steps} steps, each offset once, as all controllers "
        f"have them ({time.monotonic() - began:.0f} s)."
    )


if __name__ == "__main__":
    main()
