"""Control of a cluster's processes, and its implementation for processes that are children of this one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal, Protocol

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.cluster.process import ManagedProcess

#: ``stop``: SIGTERM, and wait until it has ended.
Act = Literal["kill", "stop", "pause", "resume", "start"]

_WAIT_S: Final = 60.0
_END_S: Final = 20.0


class ProcessControl(Protocol):
    """Hands on a cluster's processes. Every call raises ``QuorateError`` if what it does could not be done."""

    async def begin(self) -> None:
        """Let everything run."""

    async def kill(self, nodes: Sequence[LocalNode]) -> None:
        """SIGKILL, all at once; they have ended."""

    async def stop(self, node: LocalNode) -> int | None:
        """End one in order; its exit code, None where nobody tells."""

    async def pause(self, node: LocalNode) -> None:
        """SIGSTOP: frozen, sockets open."""

    async def resume(self, node: LocalNode) -> None:
        """SIGCONT."""

    async def start(self, nodes: Sequence[LocalNode]) -> None:
        """Start what does not run of them."""

    async def restore(self) -> None:
        """Thaw what was frozen and start what was ended, as far as that was not done."""

    async def end(self) -> None:
        """Let go: a cluster of one's own ends, another is left to whoever runs it."""


class LocalControl:
    """Processes that this one has started, or will."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    def process(self, node: LocalNode) -> ManagedProcess:
        """The process of a node."""
        return (self.cluster.controllers if node.kind == "controller" else self.cluster.brokers)[node.id]

    async def begin(self) -> None:
        await self.cluster.start()

    async def kill(self, nodes: Sequence[LocalNode]) -> None:
        for node in nodes:
            self.process(node).kill()
        for node in nodes:
            await self.process(node).wait(_WAIT_S)

    async def stop(self, node: LocalNode) -> int | None:
        return await self.process(node).stop(_WAIT_S)

    async def pause(self, node: LocalNode) -> None:
        self.process(node).pause()

    async def resume(self, node: LocalNode) -> None:
        self.process(node).resume()

    async def start(self, nodes: Sequence[LocalNode]) -> None:
        for node in nodes:
            await self.process(node).start()

    async def restore(self) -> None:
        for process in self.cluster.processes:
            process.resume()
        await self.cluster.start()

    async def end(self) -> None:
        """No process is left, whatever state it is in; what can end in order does."""
        with suppress(TimeoutError, QuorateError):
            async with asyncio.timeout(_END_S):
                await self.cluster.stop()
        for process in self.cluster.processes:
            process.kill()
        for process in self.cluster.processes:
            with suppress(QuorateError):
                await process.wait(_END_S)
