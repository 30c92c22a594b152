"""Random requests to controllers whose log commits, forks and changes hands at random (Hypothesis)."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.property.controller_machine.requests import BROKERS, create_large, heartbeat, random_request
from tests.property.controller_machine.stage import Node, Stage

SEEDS = st.integers(0, 2**32 - 1)
NODES = st.sampled_from([1, 2, 3])
FEW = st.sampled_from([1, 1, 2, 3, 1_000])


class ControllerMachine(RuleBasedStateMachine):
    """Three controllers, one log. See ``stage`` for what may happen and ``oracle`` for what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()

    @property
    def believer(self) -> Node:
        """A node that leads or thinks it does; if there are two, the deposed one as often as not."""
        return self._active() or self.stage.nodes[1]

    def _active(self) -> Node | None:
        active = [node for node in self.stage.nodes.values() if node.controller.is_active]
        return active[-1] if active else None

    @initialize(seed=SEEDS, is_committed=st.booleans())
    def begin(self, seed: int, is_committed: bool) -> None:
        """A cluster of four brokers and some topics."""
        stage, chance = self.stage, Random(seed)
        node = stage.nodes[chance.choice([1, 2, 3])]
        stage.elect(node, 0)
        self._all_committed()
        for _ in range(2):
            for broker in BROKERS:
                stage.ask(heartbeat(chance, node.believed, broker, current_metadata_offset=10**9), node)
            self._all_committed()
        for name in ("large-1", "large-2"):
            stage.ask(create_large(chance, name), node)
        stage.settle()
        if is_committed:
            self._all_committed()

    def _all_committed(self) -> None:
        self.stage.settle()
        self.stage.commit(1_000)
        for node in self.stage.nodes.values():
            self.stage.deliver(node, 1_000)
        self.stage.settle()

    @rule(seed=SEEDS, count=st.integers(1, 4))
    def request(self, seed: int, count: int) -> None:
        """Requests arrive at a controller that takes itself for active, rarely at another."""
        chance = Random(seed)
        node = self.believer if chance.random() < 0.95 else self.stage.nodes[chance.choice([1, 2, 3])]
        for _ in range(count):
            self.stage.ask(random_request(chance, node.believed), node)
        if chance.random() < 0.7:
            node.scheduler.run()

    @rule(seed=SEEDS)
    def ask_once(self, seed: int) -> None:
        """One request of a cluster at rest."""
        self.request(seed, 1)

    @rule(seed=SEEDS, want_fence=st.booleans())
    def beat(self, seed: int, want_fence: bool) -> None:
        """All brokers are well, or none: then what the first one finds when it comes back is a long transaction."""
        chance, node = Random(seed), self.believer
        for broker in BROKERS:
            self.stage.ask(heartbeat(chance, node.believed, broker, want_fence=want_fence), node)
        if want_fence:
            node.scheduler.run()

    @rule(seed=SEEDS, turns=st.integers(1, 3), node=NODES)
    def fall_in_the_middle(self, seed: int, turns: int, node: int) -> None:
        """All brokers were away, one comes back, and leadership is lost before all that this means is written."""
        self.beat(seed, want_fence=True)
        self._all_committed()
        chance, leader = Random(seed), self.believer
        self.stage.ask(heartbeat(chance, leader.believed, chance.choice(BROKERS)), leader)
        for _ in range(turns):
            self.stage.turn(leader)
        self.elect(node, 1_000, is_heard=True, serves=True)

    @rule(node=NODES)
    def turn(self, node: int) -> None:
        """One turn of a loop: what waits there is decided on, in part."""
        self.stage.look(self.stage.nodes[node])
        self.stage.turn(self.stage.nodes[node])
        self.stage.read(self.stage.nodes[node])

    @rule()
    def settle(self) -> None:
        self.stage.settle()

    @rule(count=FEW, node=NODES, given=FEW)
    def commit(self, count: int, node: int, given: int) -> None:
        """Some more is on a majority, and one node hears of it: mostly the leader."""
        self.stage.commit(count)
        leader = self.stage.log.leader
        hears = self.stage.nodes[node]
        if leader is not None and given > 1:
            hears = self.stage.nodes[leader.node_id]
        self.stage.deliver(hears, given)

    @rule(node=NODES, count=FEW)
    def deliver(self, node: int, count: int) -> None:
        self.stage.deliver(self.stage.nodes[node], count)

    @rule()
    def all_commit(self) -> None:
        self._all_committed()

    @rule(delay_ms=st.sampled_from([10.0, 400.0, 1_000.0, 5_000.0, 10_000.0]), stalled=st.none() | NODES)
    def advance(self, delay_ms: float, stalled: int | None) -> None:
        self.stage.advance(delay_ms, None if stalled is None else self.stage.nodes[stalled])

    @rule(node=NODES, kept=st.sampled_from([0, 0, 1, 2, 1_000]), is_heard=st.booleans(), serves=st.booleans())
    def elect(self, node: int, kept: int, is_heard: bool, serves: bool) -> None:
        """Leadership changes hands; the one who had it hears of it now or later, and so does the new one."""
        elected = self.stage.nodes[node]
        self.stage.elect(elected, kept)
        if serves:
            self.stage.commit(0)
            self.stage.deliver(elected, 1_000)
        if is_heard:
            for other in self.stage.nodes.values():
                other.member.learn()
            self.stage.loop.run_ready()

    @rule(kind=st.sampled_from(["learn", "lose", "restart", "checkpoint", "cancel"]), node=NODES)
    def trouble(self, kind: str, node: int) -> None:
        """What is rarer."""
        stage, meant = self.stage, self.stage.nodes[node]
        if kind == "learn":
            stage.learn(meant)
        elif kind == "lose":
            stage.lose()
        elif kind == "restart":
            stage.restart(meant)
        elif kind == "checkpoint":
            stage.load_checkpoint(meant)
        else:
            stage.cancel(node)

    @invariant()
    def holds(self) -> None:
        self.stage.check()

    def teardown(self) -> None:
        try:
            self.stage.finish()
        finally:
            self.stage.close()
