"""The tools of directed scenarios: a quiet cluster, and hands to steer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorate.quorum.elections.candidacy import Candidacy
from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.wire import decode
from quorate.scripts.simulation.quorum.checks import NotReached, Violation
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.quorum.network import SimulatedConnection
from quorate.scripts.simulation.quorum.options import Options
from quorate.scripts.simulation.quorum.world import World

QUIET = Options(write_rate=0.0, read_rate=0.0, delay_mean=0.0002, disk_delay_mean=0.0001, payload_bytes_max=8)
#: Virtual seconds that any single step of a scenario may take.
_STEP_SECONDS = 20.0
#: Elections that a node may lose before it leads as a scenario wants.
_TRIES = 20


class QuorumStage:
    """A started cluster without random faults. Nodes are called 0, 1, 2, ... here."""

    def __init__(self, seed: int, voters: int = 3, options: Options = QUIET) -> None:
        self.world = World(seed, replace(options, voters=voters))
        self.nodes: list[SimulatedNode] = list(self.world.nodes.values())
        #: Return True to swallow a message: (source, target, message).
        self.swallow: Callable[[int, int, Message], bool] = lambda source, target, message: False
        #: Directions in which messages stay in the sender's socket, and what lies there: (connection, payload).
        self._held: dict[tuple[int, int], list[tuple[SimulatedConnection | None, bytes]]] = {}
        self.world.network.filter = self._filter
        self.world.format()

    # --- steering ------------------------------------------------------------------------------------

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = _STEP_SECONDS) -> None:
        """Let virtual time pass until ``condition`` holds."""
        if not self.world.run_until(condition, seconds):
            raise NotReached(f"waited {seconds} s in vain for {what}:\n{self.world.describe()}")

    def pass_time(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.world.run_for(seconds)

    def lead(self, index: int) -> SimulatedNode:
        """Let this node lead, with everything committed and announced."""
        node = self.nodes[index]
        self.wait("a leader", lambda: bool(self.world.leaders()))
        for _ in range(_TRIES):
            if self.world.leaders() != [node]:
                self.stand(index)
            if self.world.run_until(lambda: self.world.leaders() == [node] and self._is_level(), 0.5):
                return node
        raise NotReached(f"node {index} does not come to lead:\n{self.world.describe()}")

    def stand(self, index: int) -> None:
        """Let a node stand for election without a Pre-Vote, as if it had just won one."""
        node = self.nodes[index]
        assert node.node is not None
        node.node._elections._candidacy = Candidacy.ALLOWED
        node.request_pump()

    def cut(self, *groups: tuple[int, ...]) -> None:
        """Let only the nodes of one group hear each other; connections stay."""
        ids = [[self.nodes[index].node_id for index in group] for group in groups]
        self.world.network.cut.clear()
        for one in ids:
            for other in ids:
                if one is not other:
                    self.world.network.cut.update((a, b) for a in one for b in other)

    def mend(self) -> None:
        """Everybody hears everybody again, on new connections."""
        self.world.network.cut.clear()
        ids = sorted(self.world.nodes)
        for a in ids:
            for b in ids:
                if a < b:
                    self.world.network.break_connection(a, b)

    def hold(self, one: int, *others: int) -> None:
        """Keep all messages between ``one`` and the others on their way until ``release``, as in TCP's back-off."""
        for other in others:
            self._held.setdefault((one, other), [])
            self._held.setdefault((other, one), [])

    def release(self, one: int, *others: int) -> None:
        """Deliver the messages that wait between ``one`` and the others, if the sender's end of the connection is still
        open.
        """
        first, network = self.nodes[0].node_id, self.world.network
        for source, target in [pair for other in others for pair in ((one, other), (other, one))]:
            for connection, payload in self._held.pop((source, target), []):
                if connection is not None and first + source in connection.open_ends:
                    self.world.scheduler.after(0.0, network.take, connection, first + source, first + target, payload)

    def write(self, index: int) -> int:
        """Append on a node that leads; the end offset."""
        end = self.world.write(self.nodes[index])
        if end is None:
            raise NotReached(f"node {index} took no write:\n{self.world.describe()}")
        return end

    def write_acknowledged(self, index: int) -> int:
        """Append and wait until it is acknowledged."""
        end = self.write(index)
        self.wait(f"the write at {end}", lambda: end in self.world.checks.acknowledged)
        return end

    def crash(self, index: int, *, is_power_cut: bool = False) -> None:
        """End a process; with a power cut its machine goes, and says nothing. It stays down until ``restart``."""
        node = self.nodes[index]
        node.stop()
        if is_power_cut:
            node.disk.power_cut(self.world.options.crash_policy)
        else:
            node.disk.kill()
        self.world.cut_off(node, is_silent=is_power_cut)

    def restart(self, index: int) -> None:
        self.world.restart(self.nodes[index])

    def finish(self) -> None:
        """Heal everything and demand that all converges."""
        self.swallow = lambda source, target, message: False
        for one, other in list(self._held):
            self.release(one, other)
        self.world.heal()
        self.world.converge()

    # --- looking -------------------------------------------------------------------------------------

    def end_of(self, index: int) -> int:
        """Log end of a node."""
        node = self.nodes[index].node
        assert node is not None
        return node.log_end_offset

    def epoch_of(self, index: int) -> int:
        node = self.nodes[index].node
        assert node is not None
        return node.epoch

    def leads(self, index: int) -> bool:
        node = self.nodes[index].node
        return node is not None and node.is_leader

    def suppose(self, fact: bool, message: str) -> None:
        """The situation that the scenario is about. Without it the scenario shows nothing."""
        if not fact:
            raise NotReached(f"{message}:\n{self.world.describe()}")

    def claim(self, fact: bool, message: str) -> None:
        """Require that the scenario's claim holds; ``message`` is said when it does not."""
        if not fact:
            raise Violation(f"{message}:\n{self.world.describe()}")

    def _is_level(self) -> bool:
        ends = {node.node.applied_end for node in self.nodes if node.node is not None}
        return len(ends) == 1 and len({node.node.epoch for node in self.nodes if node.node is not None}) == 1

    def _filter(self, source: int, target: int, payload: bytes) -> bool:
        first = self.nodes[0].node_id
        source, target = source - first, target - first
        if self.swallow(source, target, decode(payload)):
            return True
        held = self._held.get((source, target))
        if held is not None:
            held.append((self.world.network.connection(source + first, target + first), payload))
        return held is not None
