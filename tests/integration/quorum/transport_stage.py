"""An owner of connections for tests of them, and the config of a node among others on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.quorum.config import QuorumConfig, VoterAddress
from quorate.quorum.errors import Superseded
from tests.default_parts import quorum_config, quorum_limits
from tests.integration.forgetful_link import HOST


@dataclass
class Node:
    """What a transport tells its owner, and what it is told to do on a message."""

    is_voter: bool = True
    events: list[tuple[str, int]] = field(default_factory=list)
    #: Of the connections that stood, in order.
    versions: list[int] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    on_message: Callable[[bytes], None] = lambda payload: None

    def now(self) -> float:
        return time.monotonic()

    def connected(self, peer: int, directory_id: bytes, *, is_voter: bool, version: int) -> None:
        self.versions.append(version)
        self.events.append(("connected", peer))

    def disconnected(self, peer: int) -> None:
        self.events.append(("disconnected", peer))

    def received(self, peer: int, payload: bytes | bytearray) -> None:
        self.messages.append(bytes(payload))
        self.on_message(bytes(payload))

    def read_through(self) -> None:
        pass

    def superseded(self, error: Superseded) -> None:
        raise AssertionError(error)

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)


def config(node_id: int, ports: dict[int, int], **limits: int) -> QuorumConfig:
    voters = tuple(VoterAddress(other, HOST, port, bytes([other]) * 16) for other, port in ports.items())
    return quorum_config("c", node_id, bytes([node_id]) * 16, voters, limits=quorum_limits(**limits))
