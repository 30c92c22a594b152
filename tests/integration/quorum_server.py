"""One node of a quorum as a process for tests: commands come as JSON lines on a loopback port.

Run as ``python quorum_server.py DIRECTORY NODE_ID CONTROL_PORT PORT...`` with one peer port for each voter.
With DIRECTORY.quick syncs take no time, and one on the loop thread hangs as long as DIRECTORY.stuck is there.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

import uvloop

from quorate.metadata_log.batches.batch import build_batch
from quorate.metadata_log.disk import RealDisk, RealFile
from quorate.metadata_log.errors import ApiError
from quorate.quorum.config import VoterAddress
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.quorum.runtime import QuorumRuntime
from quorate.quorum.storage.storage import NodeStorage
from tests.default_parts import log_config, quorum_config

FIRST_NODE_ID = 3000


class Program:
    """The program behind the node: it answers a write when its batch is committed under the same leadership."""

    def __init__(self) -> None:
        self.leading_epoch: int | None = None
        self.waiting: dict[int, asyncio.Future[None]] = {}

    def on_commit(self, batches: CommittedBatches) -> None:
        for end in [end for end in self.waiting if end <= batches.end_offset]:
            future = self.waiting.pop(end)
            if not future.done():
                future.set_result(None)

    def on_snapshot(self, reader: SnapshotReader) -> None:
        raise AssertionError("no checkpoint is ever written here")

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        self.leading_epoch = epoch if leader_id == NODE_ID else None
        waiting, self.waiting = self.waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("leadership was lost; the outcome is unknown"))


async def answer(runtime: QuorumRuntime, program: Program, command: dict[str, Any]) -> dict[str, Any]:
    """Do what a command says."""
    node = runtime.node
    if command["op"] == "append":
        if program.leading_epoch is None:
            return {"error": "not the leader"}
        epoch = program.leading_epoch
        end = node.append(epoch, build_batch(bytes.fromhex(command["payload"]), 1, 0), 1) + 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        program.waiting[end] = future
        await future
        return {"end": end, "epoch": epoch}
    if command["op"] == "read":
        return {"offset": await runtime.read_barrier()}
    status = node.status()
    return {
        "leader": status.leader_id,
        "epoch": status.epoch,
        "leading": program.leading_epoch is not None,
        "high_watermark": status.high_watermark,
        "log_end": status.log_end_offset,
        "durable_end": status.durable_end,
        "is_voter": status.is_voter,
    }


async def serve(directory: str, control_port: int, ports: list[int]) -> None:
    """Run the node until SIGTERM."""
    voters = tuple(
        VoterAddress(FIRST_NODE_ID + k, "127.0.0.1", port, bytes([k + 1]) * 16) for k, port in enumerate(ports)
    )
    own = next(voter for voter in voters if voter.node_id == NODE_ID)
    config = quorum_config("test-cluster", NODE_ID, own.directory_id, voters)
    storage = NodeStorage.open(RealDisk(), directory, config, log_config())
    program = Program()
    runtime = QuorumRuntime(config, storage, program, _die)

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                reply = await answer(runtime, program, json.loads(line))
            except (ApiError, ConnectionError) as error:
                reply = {"error": str(error)}
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()

    await runtime.start()
    server = await asyncio.start_server(client, "127.0.0.1", control_port)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print("ready", flush=True)
    await stopped.wait()
    server.close()
    await runtime.stop()
    os._exit(0)


def replace_syncs(directory: str) -> None:
    """Where a test says so, the disk is as quick or as stuck as it needs."""
    if not os.path.exists(f"{directory}.quick"):
        return
    never = threading.Event()

    def sync(self: RealFile) -> None:
        while threading.current_thread() is threading.main_thread() and os.path.exists(f"{directory}.stuck"):
            never.wait(0.01)

    RealFile.sync = sync  # type: ignore[method-assign]


def _die(error: BaseException) -> None:
    print(f"fatal: {error!r}", file=sys.stderr, flush=True)
    os._exit(7)


if __name__ == "__main__":
    NODE_ID = int(sys.argv[2])
    replace_syncs(sys.argv[1])
    uvloop.run(serve(sys.argv[1], int(sys.argv[3]), [int(port) for port in sys.argv[4:]]))
