"""Hands on the processes of a running cluster from outside: whoever runs them does what is asked for, over a socket.

The processes stay children of the one that started them, so no process id can be mistaken and nothing has to be handed
over. A person's orders stand. A drill borrows the processes: a loan lasts as long as its connection, however the
borrower ends; then everything runs again. One line of JSON is a request or a reply.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.control import Act, LocalControl
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.members import LocalNode, Members
from quorate.scripts.cluster.plan import SOCKET_NAME, ClusterError
from quorate.scripts.cluster.process import ManagedProcess
from quorate.scripts.cluster.watched import WatchedCluster

_OWNER_ONLY: Final = 0o600
_NODES_MAX: Final = 1_000
_LINE_BYTES_MAX: Final = 1024 * 1024
#: How it shows that there is no cluster, or that nobody runs it.
_NOBODY: Final = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)
#: Of Linux's ``struct ucred``: process, user, group.
_CREDENTIALS: Final = struct.Struct("3i")
#: Of the last line of a log; a thousand processes' fit into a reply.
_LAST_LINE_MAX: Final = 500
_ENDED: Final = "the process that runs the cluster has ended"


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


#: Beside what can be done to processes: ``states`` of all, ``borrow`` all, ``restore`` what was borrowed.
_Order = Act | Literal["states", "borrow", "restore"]


class LentNode(_Line):
    """One process."""

    name: str
    state: Literal["running", "frozen", "ended"]
    pid: int | None
    #: How it ended; empty while it runs, and where it never did.
    ended: str
    #: The last line of its log, where it ended by itself; else empty.
    last_line: str


class _LendingRequest(_Line):
    number: int
    act: _Order
    #: Names of nodes.
    nodes: tuple[str, ...] = Field(max_length=_NODES_MAX)


class _Reply(_Line):
    #: Of the request.
    number: int
    #: Why it could not be done; empty: it was.
    problem: str = ""
    exit_code: int | None = None
    states: tuple[LentNode, ...] = Field(default=(), max_length=_NODES_MAX)


# --- the lender --------------------------------------------------------------------------------------


class Lender:
    """Does what is asked for to the processes of a cluster, and lends them to one borrower at a time."""

    def __init__(self, cluster: LocalCluster, say: Callable[[str], None]) -> None:
        """``say`` is told in a sentence when a loan begins and ends, and of every order."""
        self._control = LocalControl(cluster)
        self._nodes = {node.name: node for node in cluster.members.nodes}
        self._directory = cluster.directory
        self._say = say
        self._loan: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        #: One order at a time.
        self._turn = asyncio.Lock()

    @property
    def is_lent(self) -> bool:
        """While it is, the end of a process is no failure of the cluster."""
        return self._loan is not None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen to others while the block lasts; a loan ends with it, and nothing is started any more.

        Raises:
            ClusterError: somebody else runs the cluster of this directory.
        """
        require_not_run(self._directory)
        path = self._directory / SOCKET_NAME
        path.unlink(missing_ok=True)  # of one that was killed
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.fchmod(listening.fileno(), _OWNER_ONLY)
        server: asyncio.Server | None = None
        try:
            with _short(path) as short:
                listening.bind(short)
            server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE_BYTES_MAX)
            yield
        finally:
            (server or listening).close()
            path.unlink(missing_ok=True)
            for connection in self._connections:
                connection.cancel()
            if self._connections:
                await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        with closing(writer), suppress(ConnectionError, ValueError, asyncio.CancelledError):
            try:
                while line := await reader.readline():
                    await _send(writer, await self._answer(_LendingRequest.model_validate_json(line)))
            finally:
                self._connections.discard(task)
                if self._loan is task:
                    await self._end_loan()

    async def _end_loan(self) -> None:
        try:
            if not _is_cancelled():
                async with self._turn:
                    await self._control.restore()
                self._say("the drill is over, everything runs")
        finally:
            self._loan = None

    async def _answer(self, request: _LendingRequest) -> _Reply:
        if self._loan not in (None, asyncio.current_task()) and request.act != "states":
            return _Reply(number=request.number, problem="its processes are lent to a drill: wait until it is over")
        unknown = [name for name in request.nodes if name not in self._nodes]
        if unknown:
            return _Reply(number=request.number, problem=self._none_of(unknown[0]))
        try:
            return await self._done(request, [self._nodes[name] for name in request.nodes])
        except (QuorateError, OSError) as error:
            return _Reply(number=request.number, problem=str(error))

    def _none_of(self, name: str) -> str:
        known = f"{name[:100]!r} is none of its processes: {', '.join(self._nodes)}"
        kind, _, number = name.partition("-")
        if kind != "broker" or not number.isdecimal():
            return known
        # A twin has brokers that nobody plays: what is wrong with it names them, too.
        broker = number[:10]
        return f"{known}; a process of its own may play broker {broker}: quorate broker --imported --ids {broker}"

    async def _done(self, request: _LendingRequest, nodes: Sequence[LocalNode]) -> _Reply:
        exit_code = None
        match request.act:
            case "states":
                states = tuple(_state(self._control.process(node)) for node in self._nodes.values())
                return _Reply(number=request.number, states=states)
            case "borrow":
                self._loan = asyncio.current_task()
                self._say("the processes are lent to a drill: what it ends is started again")
            case "restore":
                await self._control.restore()
            case act:
                async with self._turn:
                    if not self.is_lent:
                        self._require_sensible(act, nodes)
                        self._say(f"{act} {', '.join(request.nodes)}, as asked for")
                    exit_code = await self._do(act, nodes)
        return _Reply(number=request.number, exit_code=exit_code)

    def _require_sensible(self, act: Act, nodes: Sequence[LocalNode]) -> None:
        """A person is told what an order would be in vain for, before any of it is done; a drill need not care."""
        for node in nodes:
            process = self._control.process(node)
            if act == "start" and process.is_running:
                raise ClusterError(f"{node.name} runs already" + (", frozen: resume it" if process.is_frozen else ""))
            if act != "start" and not process.is_running:
                raise ClusterError(f"{node.name} does not run: it {process.end}" if process.end else _never(node))
            if act in ("pause", "resume") and process.is_frozen == (act == "pause"):
                raise ClusterError(f"{node.name} is {'frozen already' if process.is_frozen else 'not frozen'}")

    async def _do(self, act: Act, nodes: Sequence[LocalNode]) -> int | None:
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
        return exit_code


def _never(node: LocalNode) -> str:
    return f"{node.name} was not started yet"


def _state(process: ManagedProcess) -> LentNode:
    state: Literal["running", "frozen", "ended"] = "running" if process.is_running else "ended"
    return LentNode(
        name=process.name,
        state="frozen" if process.is_frozen else state,
        pid=process.pid,
        ended=process.end,
        last_line=process.last_words()[:_LAST_LINE_MAX] if process.has_failed else "",
    )


# --- whoever asks ------------------------------------------------------------------------------------


class RemoteControl:
    """Processes that another process runs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._number = 0

    @classmethod
    async def reach(cls, directory: Path) -> RemoteControl | None:
        """Those of the cluster in a directory, for orders that stand; None if nobody runs it.

        Raises:
            ClusterError: whoever runs it cannot be reached.
        """
        try:
            with _short(directory / SOCKET_NAME) as short:
                reader, writer = await asyncio.open_unix_connection(short, limit=_LINE_BYTES_MAX)
        except _NOBODY:
            return None
        except OSError as error:
            raise ClusterError(f"{directory} is run by a process that cannot be reached: {error.strerror}") from error
        return cls(reader, writer)

    @classmethod
    async def borrow(cls, directory: Path) -> RemoteControl | None:
        """Those of the cluster in a directory, until the connection ends; None if nobody runs it.

        Raises:
            ClusterError: they are lent already, or whoever runs them ends just now.
        """
        lent = await cls.reach(directory)
        if lent is not None:
            try:
                await lent.ask("borrow", ())
            except ClusterError as error:
                await lent.end()
                raise ClusterError(f"{directory}: {error}") from error
        return lent

    def require_there(self) -> None:
        """Raise ``ClusterError`` if whoever runs the processes has ended, and they with it."""
        if self._reader.at_eof() or self._reader.exception() is not None:
            raise ClusterError(_ENDED)

    async def states(self) -> tuple[LentNode, ...]:
        """All of them, controllers first."""
        return (await self._asked("states", ())).states

    async def ask(self, order: _Order, names: Sequence[str]) -> int | None:
        """Have something done to processes by their names; the exit code of the one that was stopped last.

        Raises:
            ClusterError: it could not be done, or would have been in vain.
        """
        return (await self._asked(order, names)).exit_code

    async def begin(self) -> None:
        """They run already."""

    async def kill(self, nodes: Sequence[LocalNode]) -> None:
        await self.ask("kill", _names(nodes))

    async def stop(self, node: LocalNode) -> int | None:
        return await self.ask("stop", [node.name])

    async def pause(self, node: LocalNode) -> None:
        await self.ask("pause", [node.name])

    async def resume(self, node: LocalNode) -> None:
        await self.ask("resume", [node.name])

    async def start(self, nodes: Sequence[LocalNode]) -> None:
        await self.ask("start", _names(nodes))

    async def restore(self) -> None:
        await self.ask("restore", ())

    async def end(self) -> None:
        self._writer.close()

    async def _asked(self, order: _Order, names: Sequence[str]) -> _Reply:
        self._number += 1
        request = _LendingRequest(number=self._number, act=order, nodes=tuple(names))
        with suppress(ConnectionError):  # the reply says so
            await _send(self._writer, request)
        return await self._reply(request.number)

    async def _reply(self, number: int) -> _Reply:
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
            return reply


def _names(nodes: Sequence[LocalNode]) -> list[str]:
    return [node.name for node in nodes]


class LentCluster(WatchedCluster):
    """A cluster whose processes are lent."""

    def __init__(self, members: Members, control: RemoteControl, tls: TlsContexts | None = None) -> None:
        super().__init__(members, tls=tls)
        self._control = control

    def require_there(self) -> None:
        self._control.require_there()


def require_not_run(directory: Path) -> None:
    """Raise ``ClusterError`` if a process runs the cluster of this directory; it is named."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            with _short(directory / SOCKET_NAME) as short:
                probe.connect(short)
        except _NOBODY:
            return
        pid, _, _ = _CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    raise ClusterError(
        f"{directory} runs already, by process {pid}: `quorate node list --dir {directory}` shows its processes"
    )


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
