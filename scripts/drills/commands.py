"""Hands on processes that run elsewhere: an operator's own commands, as `ssh {host} systemctl start controller`."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Final

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent, is_silence
from quorate.metadata_log.errors import ApiError, QuorateError
from quorate.scripts.cluster.control import Act
from quorate.scripts.cluster.members import LocalNode

_COMMAND_S: Final = 30.0
#: Within which a controller that was ended must have stopped to answer.
_GONE_S: Final = 5.0
_LOOK_S: Final = 0.05
_LOOK_MS: Final = 500.0
_SAID_MAX: Final = 300
_PLACE: Final = re.compile(r"\{(\w+)\}")
PLACES: Final = ("host", "id", "kind", "name")


class CommandFailed(QuorateError):
    """A command did not do what it is for."""


class InvalidCommand(QuorateError):
    """A command that cannot be understood."""


def parse_command(text: str) -> tuple[str, ...]:
    """A command's words, as a shell would split them; no shell runs it.

    Raises:
        InvalidCommand: it is empty, a quotation has no end, or it has a place that nothing is put into.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidCommand(f"{text!r}: {error}") from error
    if not words:
        raise InvalidCommand("an empty command")
    unknown = [place for place in _PLACE.findall(text) if place not in PLACES]
    if unknown:
        known = ", ".join(f"{{{place}}}" for place in PLACES)
        raise InvalidCommand(f"{text!r}: nothing is known of {{{unknown[0]}}}; there are {known}")
    return words


def filled(words: Sequence[str], node: LocalNode) -> list[str]:
    """A command for one node."""
    values = {"host": node.host, "id": str(node.id), "kind": node.kind, "name": node.name}
    return [_PLACE.sub(lambda found: values[found[1]], word) for word in words]


class CommandControl:
    """A cluster whose processes are ended and started by commands. It runs, and goes on running afterwards."""

    def __init__(self, commands: Mapping[Act, Sequence[str]], tls: TlsContexts | None = None) -> None:
        """``commands``: words for each act that the drill needs, with places (``PLACES``); ``tls``: as for a client."""
        self._tls = tls
        self._commands = commands
        self._frozen: dict[str, LocalNode] = {}
        self._ended: dict[str, LocalNode] = {}

    async def begin(self) -> None:
        """They run already."""

    async def kill(self, nodes: Sequence[LocalNode]) -> None:
        self._ended |= {node.name: node for node in nodes}
        await asyncio.gather(*(self._run("kill", node) for node in nodes))
        await asyncio.gather(*(self._require_gone(node) for node in nodes))

    async def stop(self, node: LocalNode) -> int | None:
        self._ended[node.name] = node
        await self._run("stop", node)
        await self._require_gone(node)
        return None

    async def pause(self, node: LocalNode) -> None:
        self._frozen[node.name] = node
        await self._run("pause", node)

    async def resume(self, node: LocalNode) -> None:
        await self._run("resume", node)
        self._frozen.pop(node.name, None)

    async def start(self, nodes: Sequence[LocalNode]) -> None:
        await asyncio.gather(*(self._run("start", node) for node in nodes))
        for node in nodes:
            self._ended.pop(node.name, None)

    async def restore(self) -> None:
        healing = [self.resume(node) for node in self._frozen.values()]
        healing += [self.start([node]) for node in self._ended.values()]
        for failed in await asyncio.gather(*healing, return_exceptions=True):
            if isinstance(failed, BaseException):  # after all of them were tried
                raise failed

    async def end(self) -> None:
        """Nothing of them is ours."""

    async def _run(self, act: Act, node: LocalNode) -> None:
        words = filled(self._commands[act], node)
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise CommandFailed(f"{shlex.join(words)}: {error.strerror}") from error
        try:
            async with asyncio.timeout(_COMMAND_S):
                _, said = await process.communicate()
        except TimeoutError as error:
            raise CommandFailed(f"{shlex.join(words)}: did not end within {_COMMAND_S:.0f} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            why = said.decode(errors="replace").strip()[-_SAID_MAX:]
            raise CommandFailed(f"{shlex.join(words)}: exit code {process.returncode}" + (f": {why}" if why else ""))

    async def _require_gone(self, node: LocalNode) -> None:
        """Require that a process was ended, by its silence: a drill must not pass because its fault had no effect."""
        if node.url is None:
            return  # a broker: the drills look at whether it is fenced
        end = time.monotonic() + _GONE_S
        async with ControllerClient([node.url], tls=self._tls) as client:
            while time.monotonic() < end:
                try:
                    await client.status_of(node.url, _LOOK_MS)
                except NotSent as error:
                    if is_silence(error):
                        return
                except (NoAnswer, ApiError):
                    pass
                await asyncio.sleep(_LOOK_S)
        raise CommandFailed(f"{node.name} still answers {_GONE_S:.0f} s after the command that ends it")
