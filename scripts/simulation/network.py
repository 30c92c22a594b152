"""Connections between nodes: messages with delays, loss, duplication; breaks; partitions one-way and both-way.

A connection has a number. A message, or a notice that it broke, means something only on the connection it belongs to,
so whatever was under way when one broke is lost, as with TCP.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from quorum.outbox import Channel
from scripts.simulation.options import Options
from scripts.simulation.scheduler import Scheduler


class Endpoint(Protocol):
    """A node as the network sees it."""

    node_id: int

    @property
    def is_up(self) -> bool: ...
    @property
    def hello(self) -> tuple[bytes, bool]: ...
    def knows(self, connection: int, peer: int) -> bool: ...
    def deliver(self, connection: int, peer: int, payload: bytes) -> None: ...
    def peer_connected(self, connection: int, peer: int, hello: tuple[bytes, bool]) -> None: ...
    def peer_disconnected(self, connection: int, peer: int) -> None: ...


class Network:
    """All links of a cluster. Randomness comes from the world's generator."""

    def __init__(self, scheduler: Scheduler, rng: Random, options: Options, nodes: Mapping[int, Endpoint]) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self.options = options
        self._nodes = nodes
        self._numbers = 0
        #: Number of the connection that stands between two nodes, by (lower, higher) id.
        self._connections: dict[tuple[int, int], int] = {}
        #: Directions that swallow everything.
        self.cut: set[tuple[int, int]] = set()
        #: When the last message of a direction arrives; a connection keeps order.
        self._last_arrival: dict[tuple[int, int, Channel], float] = {}
        #: Rolling CRC over every message sent and when: equal for equal runs.
        self.trace = 0
        #: Called with (source, target, payload) for every message sent; a scenario may swallow it by returning True.
        self.filter: Callable[[int, int, bytes], bool] = lambda source, target, payload: False

    def dial_all(self) -> None:
        """Try to connect every pair that is not connected and can be."""
        ids = sorted(self._nodes)
        for low in ids:
            for high in ids:
                if low < high and (low, high) not in self._connections:
                    self._dial(low, high)

    def break_connection(self, one: int, other: int, *, is_silent: bool = False) -> None:
        """Cut a connection; both ends notice, unless it is silent (a dead host)."""
        pair = (min(one, other), max(one, other))
        number = self._connections.pop(pair, None)
        if number is None:
            return
        for node, peer in (pair, pair[::-1]):
            if not is_silent and (peer, node) not in self.cut:
                delay = self._rng.uniform(0.0001, 0.002)
                self._scheduler.after(delay, self._nodes[node].peer_disconnected, number, peer)

    def drop_node(self, node: int, *, is_silent: bool) -> None:
        """A process ended: its connections break."""
        for peer in sorted(self._nodes):
            if peer != node:
                self.break_connection(node, peer, is_silent=is_silent)

    def send(self, source: int, target: int, channel: Channel, payload: bytes, connection: int) -> None:
        """Put a message on a connection."""
        options = self.options
        self.trace = zlib.crc32(payload, zlib.crc32(repr(self._scheduler.now).encode(), self.trace))
        pair = (min(source, target), max(source, target))
        if self._connections.get(pair) != connection or (source, target) in self.cut:
            return
        if self.filter(source, target, payload):
            return
        rng = self._rng
        copies = 1
        if options.loss and rng.random() < options.loss:
            copies = 0
        elif options.duplication and rng.random() < options.duplication:
            copies = 2
        for _ in range(copies):
            arrival = self._scheduler.now + rng.expovariate(1.0 / options.delay_mean)
            if not options.is_reordering:
                key = (source, target, channel)
                arrival = max(arrival, self._last_arrival.get(key, 0.0))
                self._last_arrival[key] = arrival
            self._scheduler.at(arrival, self._arrive, connection, source, target, payload)

    def connection(self, one: int, other: int) -> int:
        """Number of the connection that stands between two nodes; 0 where none does."""
        return self._connections.get((min(one, other), max(one, other)), 0)

    def stands(self, one: int, other: int, connection: int) -> bool:
        """Whether this connection is the one that stands."""
        return self._connections.get((min(one, other), max(one, other))) == connection

    def _arrive(self, connection: int, source: int, target: int, payload: bytes) -> None:
        if not self.stands(source, target, connection) or (source, target) in self.cut:
            return
        if self._nodes[target].knows(connection, source):
            self._nodes[target].deliver(connection, source, payload)
        else:
            # The target has not noticed the connection yet: the bytes wait in its socket.
            self._scheduler.after(0.0005, self._arrive, connection, source, target, payload)

    def _dial(self, low: int, high: int) -> None:
        if {(low, high), (high, low)} & self.cut:
            return
        one, other = self._nodes[low], self._nodes[high]
        if not (one.is_up and other.is_up):
            return
        self._numbers += 1
        number = self._numbers
        self._connections[(low, high)] = number
        delay = self._rng.uniform(0.0002, 0.003)
        self._scheduler.after(delay, one.peer_connected, number, high, other.hello)
        self._scheduler.after(delay * self._rng.uniform(0.5, 2.0), other.peer_connected, number, low, one.hello)
