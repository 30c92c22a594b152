"""The processes of a cluster, wherever they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

#: What a node is; its name begins with it.
NodeKind = Literal["controller", "broker"]


def socket_path(directory: Path, controller: int) -> Path:
    """The Unix socket of a controller of the local cluster in a directory."""
    return directory / f"controller-{controller}.sock"


@dataclass(frozen=True, slots=True)
class LocalNode:
    """One process of a cluster."""

    kind: NodeKind
    #: Of a broker process: the first id that it plays.
    id: int
    #: Name or address of its machine.
    host: str
    #: Base URL of its HTTP API; None if it is not known.
    url: str | None
    #: Ids that it plays: a broker process may play several.
    ids: tuple[int, ...]

    @property
    def name(self) -> str:
        """As ``controller-1``."""
        return f"{self.kind}-{self.id}"


@dataclass(frozen=True, slots=True)
class Members:
    """All processes of a cluster, by id."""

    cluster_id: str
    controllers: Mapping[int, LocalNode]
    brokers: Mapping[int, LocalNode]

    @property
    def nodes(self) -> Iterator[LocalNode]:
        """All of them, controllers first."""
        yield from self.controllers.values()
        yield from self.brokers.values()

    @property
    def controller_urls(self) -> tuple[str, ...]:
        """Base URLs of the controllers' HTTP API."""
        return tuple(node.url for node in self.controllers.values() if node.url is not None)

    def sockets_in(self, directory: Path) -> dict[str, str]:
        """Paths of the Unix sockets that are there of the controllers of a local cluster's directory, by URL."""
        paths = {node.url: socket_path(directory, node.id) for node in self.controllers.values()}
        return {url: str(path) for url, path in paths.items() if url is not None and path.is_socket()}

    @property
    def broker_ids(self) -> frozenset[int]:
        """All brokers that are played."""
        return frozenset(broker for node in self.brokers.values() for broker in node.ids)
