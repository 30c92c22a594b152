"""Connections between nodes, each with two ends that know only what their sockets tell them.

In half of the runs a connection is a *stream*, as TCP's: what is sent into a partition is held and delivered when its
retransmission comes through, in order, every direction of every connection at its own time. In the others messages are
lost, doubled and reordered, which is more than TCP does: agreement must not rest on it.

An end is open until its process closes it, or something reaches it that says that the other has gone: the last bytes
of a process that ended, or the answer of a host that knows nothing of the connection. A host that lost its power sends
neither, nor does one behind a cut: such a connection is *half open*. The node with the higher id dials, as in
production, when its own end is closed, and not before. What ends a connection that is half open for good is
production's rule of silence (``quorum.transport.silence``), which the nodes keep.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, Protocol

from quorate.controller.process.quorum_parts import quorum_timing
from quorate.controller.process.settings import QuorumSettings
from quorate.quorum.messages.outbox import Channel
from quorate.scripts.simulation.machine.scheduler import VirtualScheduler
from quorate.scripts.simulation.quorum.damaged_frames import damaged
from quorate.scripts.simulation.quorum.options import Options

#: Virtual seconds. TCP's first wait before it sends again, which doubles, and its longest.
_RETRANSMIT_MIN: Final = 0.05
_RETRANSMIT_MAX: Final = 120.0
#: An attempt to connect that gets no answer is given up after this long at most.
_CONNECT_TIMEOUT: Final = quorum_timing(QuorumSettings()).connect_timeout
#: Until bytes are looked at again that their process has not noticed the connection of.
_ACCEPT_SECONDS: Final = 0.0005


class ShownHello(NamedTuple):
    """A node's account of itself in the handshake."""

    directory_id: bytes
    is_voter: bool
    #: See ``QuorumConfig.newest_version``.
    newest_version: int


class NetworkEndpoint(Protocol):
    """A node as the network sees it."""

    node_id: int

    @property
    def is_up(self) -> bool: ...
    @property
    def is_frozen(self) -> bool: ...
    @property
    def hello(self) -> ShownHello: ...
    def knows(self, connection: int, peer: int) -> bool: ...
    def deliver(self, connection: int, peer: int, payload: bytes) -> None: ...
    def unread(self, connection: int) -> int: ...
    def peer_connected(self, connection: int, peer: int, hello: ShownHello) -> None: ...
    def peer_disconnected(self, connection: int, peer: int) -> None: ...


@dataclass(eq=False, slots=True)
class _Flow:
    """One direction of one connection, of one channel."""

    #: When the last message of it arrives; a connection keeps order.
    last_arrival: float = 0.0
    #: What waits for its retransmission; None stands for the end of the connection.
    held: deque[bytes | None] = field(default_factory=deque)
    #: Bytes that were sent and have not arrived, of a stream.
    waiting: int = 0
    #: How long the next wait is.
    backoff: float = _RETRANSMIT_MIN


@dataclass(eq=False, slots=True)
class SimulatedConnection:
    """A message, or a notice that it broke, means something only on the connection that it belongs to."""

    number: int
    #: Nodes whose end is open.
    open_ends: set[int]
    #: Whether something on the way has forgotten it, and swallows what is sent.
    is_forgotten: bool = False
    flows: dict[tuple[int, Channel], _Flow] = field(default_factory=dict)

    def flow(self, source: int, channel: Channel) -> _Flow:
        found = self.flows.get((source, channel))
        if found is None:
            found = self.flows[source, channel] = _Flow()
        return found


class SimulatedNetwork:
    """All links of a cluster. Randomness comes from the world's generator."""

    def __init__(
        self, scheduler: VirtualScheduler, rng: Random, options: Options, nodes: Mapping[int, NetworkEndpoint]
    ) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self.options = options
        self._nodes = nodes
        self._numbers = 0
        #: The connection whose end a node has open, by (owner, peer).
        self._ends: dict[tuple[int, int], SimulatedConnection] = {}
        #: (dialler, peer) of attempts that are under way.
        self._attempts: set[tuple[int, int]] = set()
        #: Nodes whose machine is off: nothing answers there.
        self._dark: set[int] = set()
        #: Directions in which nothing passes.
        self.cut: set[tuple[int, int]] = set()
        #: Nodes whose frames are damaged on their way, now and then.
        self.noisy = set(nodes)
        #: Rolling CRC over every message sent and when: equal for equal runs.
        self.trace = 0
        #: Called with (source, target, payload) for every message sent; a scenario may swallow it by returning True.
        self.filter: Callable[[int, int, bytes], bool] = lambda source, target, payload: False

    # --- connections ---------------------------------------------------------------------------------

    def dial_all(self) -> None:
        """Let every node dial whom it should be connected to and, as far as it knows, is not."""
        ids = sorted(self._nodes)
        for low in ids:
            for high in ids:
                if low < high and (high, low) not in self._ends and (high, low) not in self._attempts:
                    self._dial(high, low)

    def is_open(self, owner: int, peer: int, connection: int) -> bool:
        """Whether this end of a connection is open."""
        end = self._ends.get((owner, peer))
        return end is not None and end.number == connection

    def connection(self, owner: int, peer: int) -> SimulatedConnection | None:
        """The connection of which a node has an end open."""
        return self._ends.get((owner, peer))

    def is_whole(self) -> bool:
        """Whether every two nodes have a connection, with both ends open, on which what is sent arrives."""
        ids = sorted(self._nodes)
        pairs = [(low, high) for low in ids for high in ids if low < high]
        ends = [(self._ends.get((low, high)), self._ends.get((high, low))) for low, high in pairs]
        return all(one is not None and one is other and not one.is_forgotten for one, other in ends)

    def close(self, owner: int, peer: int) -> None:
        """A process closes its end; the other is told, if that gets through."""
        connection = self._ends.pop((owner, peer), None)
        if connection is not None:
            connection.open_ends.discard(owner)
            self._transmit(connection, owner, peer, Channel.CONSENSUS, None, self._rng.uniform(0.0001, 0.002))

    def break_connection(self, one: int, other: int) -> None:
        """Something on the way ends a connection: who can be reached is told."""
        for node, peer in ((one, other), (other, one)):
            connection = self._ends.get((node, peer))
            if connection is not None and (peer, node) not in self.cut:
                self._scheduler.after(self._rng.uniform(0.0001, 0.002), self._gone, connection, node, peer)

    def forget(self, one: int, other: int) -> None:
        """Something on the way forgets a connection: both ends are open, and nothing passes ever again."""
        for node, peer in ((one, other), (other, one)):
            connection = self._ends.get((node, peer))
            if connection is not None:
                connection.is_forgotten = True

    def drop_node(self, node: int, *, is_silent: bool) -> None:
        """A process ended. Its machine says so to its peers, unless it went with it."""
        if is_silent:
            self._dark.add(node)
        self._attempts.difference_update([attempt for attempt in self._attempts if attempt[0] == node])
        for peer in sorted(self._nodes):
            if not is_silent:
                self.close(node, peer)
            elif (node, peer) in self._ends:
                self._ends.pop((node, peer)).open_ends.discard(node)

    def booted(self, node: int) -> None:
        """A machine runs: it refuses what it knows nothing of."""
        self._dark.discard(node)

    # --- messages ------------------------------------------------------------------------------------

    def waiting(self, source: int, target: int) -> int:
        """Bytes sent on the connection of which ``source`` has an end open that the target's process has not read.

        0 where connections are no streams: what is lost and doubled cannot be counted.
        """
        connection = self._ends.get((source, target))
        if connection is None or not self.options.is_stream:
            return 0
        sent = sum([flow.waiting for (sender, _), flow in connection.flows.items() if sender == source])
        return sent + self._nodes[target].unread(connection.number)

    def send(self, source: int, target: int, channel: Channel, payload: bytes) -> None:
        """Put a message, or a ping if it is empty, on the connection of which ``source`` has an end open."""
        self.trace = zlib.crc32(payload, zlib.crc32(repr(self._scheduler.now).encode(), self.trace))
        connection = self._ends.get((source, target))
        if connection is None or (payload and self.filter(source, target, payload)):
            return
        options, rng = self.options, self._rng
        if options.damage and payload and source in self.noisy and rng.random() < options.damage:
            payload = damaged(rng, payload)
        copies = 1
        delay = rng.expovariate(1.0 / options.delay_mean)
        if options.loss and rng.random() < options.loss:
            copies = 0
        elif options.duplication and rng.random() < options.duplication:
            copies = 2
        if options.is_stream:
            # What is lost is sent again.
            delay += 0.0 if copies else rng.uniform(_RETRANSMIT_MIN, 4 * _RETRANSMIT_MIN)
            copies = 1
        for copy in range(copies):
            delay = rng.expovariate(1.0 / options.delay_mean) if copy else delay
            self._transmit(connection, source, target, channel, payload, delay)

    def _transmit(
        self,
        connection: SimulatedConnection,
        source: int,
        target: int,
        channel: Channel,
        payload: bytes | None,
        delay: float,
    ) -> None:
        arrival = self._scheduler.now + delay
        if self.options.is_stream or not self.options.is_reordering:
            flow = connection.flow(source, channel)
            flow.waiting += len(payload or b"")
            arrival = flow.last_arrival = max(arrival, flow.last_arrival)
        self._scheduler.at(arrival, self._arrive, connection, source, target, channel, payload)

    def _arrive(
        self, connection: SimulatedConnection, source: int, target: int, channel: Channel, payload: bytes | None
    ) -> None:
        if connection.is_forgotten:
            return
        is_cut = (source, target) in self.cut
        if self.options.is_stream:
            flow = connection.flow(source, channel)
            if is_cut and not flow.held:
                self._retransmit_later(connection, source, target, channel, flow)
            if is_cut or flow.held:
                flow.held.append(payload)
                return
            flow.waiting -= len(payload or b"")
        if not is_cut:
            self.take(connection, source, target, payload)

    def _retransmit_later(
        self, connection: SimulatedConnection, source: int, target: int, channel: Channel, flow: _Flow
    ) -> None:
        wait = flow.backoff * self._rng.uniform(0.5, 1.0)
        flow.backoff = min(2 * flow.backoff, _RETRANSMIT_MAX)
        self._scheduler.after(wait, self._retransmit, connection, source, target, channel, flow)

    def _retransmit(
        self, connection: SimulatedConnection, source: int, target: int, channel: Channel, flow: _Flow
    ) -> None:
        if (source, target) in self.cut and target in connection.open_ends:
            self._retransmit_later(connection, source, target, channel, flow)
            return
        flow.backoff = _RETRANSMIT_MIN
        held, flow.held = flow.held, deque()
        flow.waiting -= sum(len(payload or b"") for payload in held)
        for payload in held:
            self.take(connection, source, target, payload)

    def take(self, connection: SimulatedConnection, source: int, target: int, payload: bytes | None) -> None:
        """Bytes reach a machine."""
        if target in self._dark:
            return
        if target not in connection.open_ends:
            self._refuse(connection, source, target)
        elif payload is None:
            self._gone(connection, target, source)
        elif self._nodes[target].knows(connection.number, source):
            self._nodes[target].deliver(connection.number, source, payload)
        else:
            # The process has not noticed the connection yet: the bytes wait in its socket.
            self._scheduler.after(_ACCEPT_SECONDS, self.take, connection, source, target, payload)

    def _refuse(self, connection: SimulatedConnection, source: int, target: int) -> None:
        """``target``'s machine knows nothing of the connection, and says so."""
        if source in connection.open_ends and (target, source) not in self.cut:
            self._scheduler.after(self._rng.uniform(0.0001, 0.002), self._gone, connection, source, target)

    def _gone(self, connection: SimulatedConnection, node: int, peer: int) -> None:
        """An end learns that there is no other any more."""
        if node in connection.open_ends:
            connection.open_ends.discard(node)
            del self._ends[node, peer]
            self._nodes[node].peer_disconnected(connection.number, peer)

    # --- dialling ------------------------------------------------------------------------------------

    def _dial(self, high: int, low: int) -> None:
        dialler, other = self._nodes[high], self._nodes[low]
        if not dialler.is_up or dialler.is_frozen:
            return
        is_answered = not ({(low, high), (high, low)} & self.cut or low in self._dark or other.is_frozen)
        if not is_answered:
            self._attempts.add((high, low))
            wait = self._rng.uniform(0.1, 1.0) * _CONNECT_TIMEOUT
            self._scheduler.after(wait, self._attempts.discard, (high, low))
        elif other.is_up:
            self._connect(high, low)

    def _connect(self, high: int, low: int) -> None:
        self._numbers += 1
        connection = SimulatedConnection(self._numbers, {high, low})
        older = self._ends.get((low, high))
        if older is not None:
            # Nobody looks at its bytes any more.
            older.open_ends.discard(low)
        self._ends[high, low] = self._ends[low, high] = connection
        delay = self._rng.uniform(0.0002, 0.003)
        hellos = {node: self._nodes[node].hello for node in (high, low)}
        for node, peer, after in ((low, high, delay), (high, low, delay * self._rng.uniform(0.5, 2.0))):
            self._scheduler.after(after, self._nodes[node].peer_connected, connection.number, peer, hellos[peer])
