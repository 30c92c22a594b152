"""Lending the processes of a running cluster: whoever runs them does to them what a drill asks for, over a socket.

The processes stay children of the one that started them, so no process id can be mistaken and nothing has to be handed
over. A loan lasts as long as its connection, however the borrower ends; then everything runs again. One line of JSON is
a request or a reply.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from metadata_log.errors import QuorateError
from scripts.cluster.control import Act, LocalControl
from scripts.cluster.local import LocalCluster
from scripts.cluster.members import Members, Node
from scripts.cluster.plan import SOCKET_NAME, ClusterError
from scripts.cluster.watched import WatchedCluster

_OWNER_ONLY: Final = 0o600
_NODES_MAX: Final = 1_000
_LINE_BYTES_MAX: Final = 64 * 1024
_ENDED: Final = "the process that runs the cluster has ended"


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Request(_Line):
    number: int
    act: Act | Literal["restore"]
    #: Names of nodes.
    nodes: tuple[str, ...] = Field(max_length=_NODES_MAX)


class _Reply(_Line):
    #: Of the request; 0: whether there is a loan at all.
    number: int
    #: Why it could not be done; empty: it was.
    problem: str = ""
    exit_code: int | None = None


# --- the lender --------------------------------------------------------------------------------------


class Lender:
    """Lends the processes of a cluster to one borrower at a time."""

    def __init__(self, cluster: LocalCluster, say: Callable[[str], None]) -> None:
        """``say`` is told in a sentence when a loan begins and ends."""
        self._control = LocalControl(cluster)
        self._nodes = {node.name: node for node in cluster.members.nodes}
        self._directory = cluster.directory
        self._say = say
        self._loan: asyncio.Task[None] | None = None

    @property
    def is_lent(self) -> bool:
        """While it is, the end of a process is no failure of the cluster."""
        return self._loan is not None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let others borrow while the block lasts; a loan ends with it, and nothing is started any more."""
        path = self._directory / SOCKET_NAME
        path.unlink(missing_ok=True)  # of one that was killed
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.fchmod(listening.fileno(), _OWNER_ONLY)
        with _short(path) as short:
            listening.bind(short)
        server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE_BYTES_MAX)
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)
            if self._loan is not None:
                self._loan.cancel()
                await asyncio.wait([self._loan])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError, ValueError, asyncio.CancelledError):
            if self.is_lent:
                await _send(writer, _Reply(number=0, problem="its processes are lent to another drill"))
                return
            self._loan = asyncio.current_task()
            self._say("the processes are lent to a drill: what it ends is started again")
            try:
                await self._lend(reader, writer)
            finally:
                self._loan = None

    async def _lend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _send(writer, _Reply(number=0))
            while line := await reader.readline():
                await _send(writer, await self._answer(_Request.model_validate_json(line)))
        finally:
            if not _is_cancelled():
                await self._control.restore()
                self._say("the drill is over, everything runs")

    async def _answer(self, request: _Request) -> _Reply:
        nodes = [self._nodes[name] for name in request.nodes if name in self._nodes]
        if len(nodes) != len(request.nodes):
            return _Reply(number=request.number, problem=f"not all of {', '.join(request.nodes)} are processes here")
        try:
            return _Reply(number=request.number, exit_code=await self._do(request.act, nodes))
        except (QuorateError, OSError) as error:
            return _Reply(number=request.number, problem=str(error))

    async def _do(self, act: Act | Literal["restore"], nodes: Sequence[Node]) -> int | None:
        control = self._control
        exit_code = None
        match act:
            case "kill":
                await control.kill(nodes)
            case "start":
                await control.start(nodes)
            case "stop":
                for node in nodes:
                    exit_code = await control.stop(node)
            case "pause":
                for node in nodes:
                    await control.pause(node)
            case "resume":
                for node in nodes:
                    await control.resume(node)
            case "restore":
                await control.restore()
        return exit_code


# --- the borrower ------------------------------------------------------------------------------------


class LentControl:
    """Processes that another process runs and lends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._number = 0

    @classmethod
    async def borrow(cls, directory: Path) -> LentControl | None:
        """The processes of the cluster in a directory; None if nobody runs it, or nobody who lends.

        Raises:
            ClusterError: it is lent already, or whoever runs it ends just now.
        """
        try:
            with _short(directory / SOCKET_NAME) as short:
                reader, writer = await asyncio.open_unix_connection(short, limit=_LINE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise ClusterError(f"{directory} is run by a process that cannot be reached: {error.strerror}") from error
        lent = cls(reader, writer)
        try:
            await lent._reply(0)
        except ClusterError as error:
            writer.close()
            raise ClusterError(f"{directory}: {error}") from error
        return lent

    def require_there(self) -> None:
        """Raise ``ClusterError`` if whoever runs the processes has ended, and they with it."""
        if self._reader.at_eof() or self._reader.exception() is not None:
            raise ClusterError(_ENDED)

    async def begin(self) -> None:
        """They run already."""

    async def kill(self, nodes: Sequence[Node]) -> None:
        await self._ask("kill", nodes)

    async def stop(self, node: Node) -> int | None:
        return await self._ask("stop", [node])

    async def pause(self, node: Node) -> None:
        await self._ask("pause", [node])

    async def resume(self, node: Node) -> None:
        await self._ask("resume", [node])

    async def start(self, nodes: Sequence[Node]) -> None:
        await self._ask("start", nodes)

    async def restore(self) -> None:
        await self._ask("restore", [])

    async def end(self) -> None:
        self._writer.close()

    async def _ask(self, act: Act | Literal["restore"], nodes: Sequence[Node]) -> int | None:
        self._number += 1
        request = _Request(number=self._number, act=act, nodes=tuple(node.name for node in nodes))
        with suppress(ConnectionError):  # the reply says so
            await _send(self._writer, request)
        return await self._reply(request.number)

    async def _reply(self, number: int) -> int | None:
        """The answer to a request; those to requests that were given up are passed over."""
        while True:
            try:
                line = await self._reader.readline()
            except ConnectionError:
                line = b""
            if not line:
                raise ClusterError(_ENDED)
            reply = _Reply.model_validate_json(line)
            if reply.number != number:
                continue
            if reply.problem:
                raise ClusterError(reply.problem)
            return reply.exit_code


class LentCluster(WatchedCluster):
    """A cluster whose processes are lent."""

    def __init__(self, members: Members, control: LentControl) -> None:
        super().__init__(members)
        self._control = control

    def require_there(self) -> None:
        self._control.require_there()


# --- both --------------------------------------------------------------------------------------------


async def _send(writer: asyncio.StreamWriter, line: _Line) -> None:
    writer.write(line.model_dump_json().encode() + b"\n")
    await writer.drain()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A name of a socket that fits into the 107 bytes that the kernel takes, however deep its directory lies."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
