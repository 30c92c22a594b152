"""Real quorum processes for tests: started, killed, stopped and asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.scripts.cluster.ports import free_ports
from tests.default_parts import log_config

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("quorum_server.py")
FIRST_NODE_ID = 3000
DEADLINE_SECONDS = 60.0


class Client:
    """One connection to a server's control port; requests one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, **command: Any) -> None:
        """Put a command into the server's socket, whether it reads or not."""
        self._writer.write(json.dumps(command).encode() + b"\n")

    async def reply(self) -> dict[str, Any]:
        """The next reply; raises ConnectionError when the server is gone."""
        line = await self._reader.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        reply: dict[str, Any] = json.loads(line)
        return reply

    async def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return await self.reply()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Cluster:
    """Three voters in directories of a test."""

    def __init__(self, directory: Path, count: int = 3) -> None:
        self.directory = directory
        self.count = count
        ports = free_ports(2 * count)
        self._peer_ports, self._control_ports = ports[:count], ports[count:]
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        for index in range(count):
            log = self.log_directory(index)
            log.mkdir(parents=True)
            (log / QUORUM_STATE_NAME).write_bytes(encode_quorum_state(QuorumState(0)))

    def log_directory(self, index: int) -> Path:
        return self.directory / str(index) / "__cluster_metadata-0"

    async def start(self, index: int) -> None:
        """Start a process and wait until it serves."""
        arguments = [self.log_directory(index), FIRST_NODE_ID + index, self._control_ports[index], *self._peer_ports]
        with (self.directory / f"{index}.log").open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                str(SERVER),
                *map(str, arguments),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await process.stdout.readline() == b"ready\n", (self.directory / f"{index}.log").read_text()
        self.processes[index] = process

    def make_quick(self, index: int) -> None:
        """Syncs of the process that is started next take no time."""
        Path(f"{self.log_directory(index)}.quick").touch()

    def stick(self, index: int) -> None:
        """The next sync of a process with quick syncs that runs on its loop thread hangs until ``unstick``."""
        Path(f"{self.log_directory(index)}.stuck").touch()

    def unstick(self, index: int) -> None:
        Path(f"{self.log_directory(index)}.stuck").unlink()

    def said(self, index: int) -> str:
        """What a process has written to standard error."""
        return (self.directory / f"{index}.log").read_text()

    async def kill(self, index: int) -> None:
        """kill -9."""
        process = self.processes.pop(index)
        process.kill()
        await process.communicate()

    def signal(self, index: int, number: signal.Signals) -> None:
        self.processes[index].send_signal(number)

    async def stop_all(self) -> None:
        """SIGTERM, and every process must end by itself."""
        for process in self.processes.values():
            process.terminate()
        async with asyncio.timeout(DEADLINE_SECONDS):
            codes = []
            for process in self.processes.values():
                await process.communicate()
                codes.append(process.returncode)
        self.processes = {}
        assert codes == [0] * len(codes), [(self.directory / f"{k}.log").read_text() for k in range(self.count)]

    async def kill_all(self) -> None:
        for index in list(self.processes):
            self.signal(index, signal.SIGCONT)
            await self.kill(index)

    async def connect(self, index: int) -> Client:
        return Client(*await asyncio.open_connection("127.0.0.1", self._control_ports[index]))

    async def status(self, index: int) -> dict[str, Any] | None:
        """What a node says of itself, None when it does not answer soon."""
        try:
            async with asyncio.timeout(2):
                client = await self.connect(index)
                try:
                    return await client.ask(op="status")
                finally:
                    await client.close()
        except (OSError, TimeoutError):
            return None

    async def leader(self, *, without: int | None = None) -> int:
        """Wait for a node that leads and was announced."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                for index in sorted(self.processes):
                    if index != without:
                        status = await self.status(index)
                        if status is not None and status["leading"]:
                            return index

    async def append(self, payload: bytes, *, without: int | None = None) -> int:
        """Have it acknowledged, by whoever leads then; the offset at which it ends."""
        while True:
            client = await self.connect(await self.leader(without=without))
            try:
                reply = await client.ask(op="append", payload=payload.hex())
            finally:
                await client.close()
            if "end" in reply:
                return int(reply["end"])

    async def level(self) -> int:
        """Wait until all nodes are voters with the same log, all of it committed; its end."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                found = [await self.status(index) for index in range(self.count)]
                ends = {
                    (s["log_end"], s["high_watermark"], s["durable_end"], s["is_voter"]) if s else None for s in found
                }
                if len(ends) == 1 and None not in ends:
                    (log_end, high_watermark, durable_end, is_voter) = next(end for end in ends if end is not None)
                    if log_end == high_watermark == durable_end and is_voter:
                        return int(log_end)

    def batches(self, index: int) -> dict[int, bytes]:
        """The log of a stopped node as it lies on disk: batches by end offset."""
        log = MetadataLog.open(RealDisk(), str(self.log_directory(index)), log_config())
        assert log.damage is None
        found = {log.entry(position).end_offset: log.read(position) for position in range(log.entry_count)}
        log.close()
        return found
