"""Three production controllers on one log in memory, a clock for each, and clients that ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine import quorum_controller
from quorate.controller.operations.active_role import ActiveRole
from quorate.controller.operations.bootstrap import fresh_records
from quorate.controller.operations.operations import Operations
from quorate.metadata_log.errors import ApiError, NotController
from quorate.metadata_log.ids import Uuid
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.scripts.simulation.system.oracle import ReplayedLog
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.invariants import broken_rules
from quorate.snapshots.image_digest import EMPTY_DIGEST, digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_limits, role_settings
from tests.property.controller_machine.log_of_three import NODES, Member, SharedLog
from tests.property.controller_machine.traces import TracedController, Traces, counting_reply
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import CONFIG, uuid

#: Periodic work comes often, so that it meets everything else.
ROLE_SETTINGS = role_settings(
    idle_noop_interval_ms=4_000.0, leader_balance_interval_ms=7_000.0, unclean_election_interval_ms=11_000.0
)
LIMITS = controller_limits(queue_length_max=40, uncommitted_bytes_max=20_000)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the stage's."""

    now_ms = 0.0

    def time(self) -> float:
        return self.now_ms / 1000

    def run_ready(self) -> None:
        """What is ready now, and what that makes ready: a reply, whoever waits for it, and who waits for them."""
        for _ in range(3):
            self.call_soon(self.stop)
            self.run_forever()


class Node:
    """One controller process."""

    def __init__(self, stage: Stage, node_id: int) -> None:
        self.stage = stage
        self.member = Member(node_id, stage.log)
        self.start()

    def start(self) -> None:
        """A process with nothing but its log."""
        stage, node_id = self.stage, self.member.node_id
        self.scheduler = ManualScheduler()
        self.scheduler.now_ms = stage.loop.now_ms
        self.faults = RecordingFaults()
        self.role = ActiveRole(CONFIG, ROLE_SETTINGS, fresh_records(), JavaRandom(node_id), stage.new_topic_id)
        self.controller = TracedController(node_id, self.member, self.role, self.scheduler, self.faults, LIMITS)
        self.controller.watch(stage.traces, self.member)
        self.role.bind(self.controller)
        self.operations = Operations(self.controller, self.role)
        self.member.listener = self.controller
        self.digest = EMPTY_DIGEST
        #: The values that were found to be right: values stay right.
        self.checked_stable: MetadataImage | None = None
        self.checked_head: ReplayState | None = None

    @property
    def believed(self) -> MetadataImage:
        """What a client that asks this node may have seen of the cluster, committed or not."""
        head = self.controller._head
        return self.controller.stable if head is None else head.image


class Stage:
    """Everything, and what may happen to it. Every change is followed by ``check``, whoever makes it."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self._complaints: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, complaint: self._complaints.append(complaint))
        self.log = SharedLog()
        self.reference = ReplayedLog()
        self.traces = Traces(self.reference)
        self._topics = 0
        #: Replies are made by the controller's module: there it finds the ones that count.
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(quorum_controller, "FutureReply", counting_reply(self.traces))
        self.nodes = {node_id: Node(self, node_id) for node_id in NODES}
        self.tasks: list[asyncio.Task[Any]] = []

    def new_topic_id(self) -> Uuid:
        self._topics += 1
        return uuid(3, self._topics)

    # --- what happens --------------------------------------------------------------------------------

    def ask(self, request: Callable[[Node], Coroutine[Any, Any, Any]], node: Node) -> None:
        """A client sends a request; the node's turn has not come yet."""
        task = self.loop.create_task(_answered(request(node)))
        self.tasks.append(task)
        self.loop.run_ready()

    def read(self, node: Node) -> None:
        """A linearizable read: it must see whatever was acknowledged before it began."""
        least = self.traces.acknowledged_end()

        def look(_: MetadataImage) -> None:
            assert node.controller.applied_offset >= least, "a linearizable read misses what was acknowledged before"

        self.ask(lambda n: n.controller.append_read_event(look, is_linearizable=True), node)

    def look(self, node: Node) -> None:
        """A change that writes nothing: a read as well, by way of the queue."""
        self.ask(lambda n: n.controller.append_write_event("look", lambda _: Decision((), None), 5_000.0), node)

    def turn(self, node: Node) -> None:
        """One turn of the node's loop."""
        node.scheduler.run_turn()

    def settle(self) -> None:
        """All that can happen without time or the quorum."""
        for _ in range(3):
            for node in self.nodes.values():
                node.scheduler.run()
            self.loop.run_ready()

    def commit(self, count: int) -> None:
        before = self.log.committed
        self.log.commit(count)
        for batch in self.log.batches[before : self.log.committed]:
            self.reference.add(batch)

    def deliver(self, node: Node, count: int) -> None:
        node.member.deliver(count)
        self.loop.run_ready()

    def elect(self, node: Node, kept: int) -> None:
        """A node leads the next epoch. It had all that is committed, and so much of the rest."""
        if node.member.own_log is not None:
            node.member.learn()
        self.log.elect(node.member, kept, node.scheduler.wall_ms())
        self.loop.run_ready()

    def learn(self, node: Node) -> None:
        """The node hears who leads now."""
        node.member.learn()
        self.loop.run_ready()

    def lose(self) -> None:
        """The leader hears that it is none any more, and nobody is."""
        if self.log.leader is not None:
            self.log.leader.resign(self.log.epoch)
        self.loop.run_ready()

    def advance(self, delay_ms: float, stalled: Node | None) -> None:
        """Time passes; a stalled process acts on it only afterwards, its timers all at once."""
        self.loop.now_ms += delay_ms
        for node in self.nodes.values():
            if node is stalled:
                node.scheduler.now_ms += delay_ms
            else:
                node.scheduler.advance(delay_ms)
        self.loop.run_ready()

    def load_checkpoint(self, node: Node) -> None:
        """A standby that is behind gets the newest state at the end of a batch, through a checkpoint's bytes."""
        image = self.reference.newest.stable
        end = image.provenance.end_offset
        member = node.member
        if member.leads is not None or end <= member.delivered_end or end not in self.reference.batch_ends:
            return
        loaded = read_checkpoint(checkpoint_batches(image, 0), end, image.provenance.epoch)
        if image.provenance.epoch > member.announced[1]:
            member.learn()
        member.delivered, member.delivered_end = self.reference.batch_ends.index(end) + 1, end
        node.controller.on_snapshot(ReplayState(loaded), end)
        self.loop.run_ready()

    def restart(self, node: Node) -> None:
        """The process ends in order and starts again from its log."""
        member = node.member
        node.controller.close()
        if member.leads is not None:
            member.stop_leading()
        member.announced, member.delivered, member.delivered_end = (None, 0), 0, 0
        node.start()
        self.loop.run_ready()

    def cancel(self, index: int) -> None:
        """A client goes away."""
        waiting = [task for task in self.tasks if not task.done()]
        if waiting:
            waiting[index % len(waiting)].cancel()
            self.loop.run_ready()

    # --- what must hold ------------------------------------------------------------------------------

    def check(self) -> None:
        """After every step."""
        assert not self._complaints, self._complaints
        for task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()
        self.tasks = [task for task in self.tasks if not task.done()]
        for node in self.nodes.values():
            self._check_node(node)

    def _check_node(self, node: Node) -> None:
        member, controller = node.member, node.controller
        assert not node.faults.seen, node.faults.seen
        assert controller.applied_offset == member.delivered_end
        if controller.stable is not node.checked_stable:
            expected = self.reference.states[member.delivered_end].stable
            assert controller.stable == expected, "the stable state is not what the log says"
            node.digest = digest_image(controller.stable, node.digest)
            assert node.digest.value == self.reference.digest_at(member.delivered_end), "digest"
            assert not list(broken_rules(controller.stable)), "the stable state breaks rules of every image"
            node.checked_stable = controller.stable
        head = controller._head
        if head is None:
            return
        assert head.epoch == member.leads
        waits = head.has_uncommitted or bool(member.barriers)
        assert waits or controller.pending_replies == 0, "replies wait for nothing"
        if head.next_offset == member.log_end_offset and head.state is not node.checked_head:
            self._check_head(member, head.state)
            node.checked_head = head.state

    def _check_head(self, member: Member, head: ReplayState) -> None:
        state = self.reference.states[member.delivered_end]
        for batch in member.own_batches()[member.delivered :]:
            state = state.replay_batch(batch)
        assert head == state, "the head is not what the log says"

    def finish(self) -> None:
        """Let everything come to rest: then nobody waits any more, and all nodes say the same."""
        self.settle()
        for node in self.nodes.values():
            node.member.learn()
        self.settle()
        leader = self.log.leader
        if leader is None:
            self.elect(self.nodes[1], 100)
        for _ in range(3):
            self._commit_all()
        for _ in range(4):
            self.advance(3_000.0, None)
            self._commit_all()
        self.check()
        assert not self.tasks, "requests without an answer"
        for node in self.nodes.values():
            assert node.controller.pending_replies == 0
            assert node.controller.stable == self.reference.newest.stable
        self.traces.check_ended()

    def _commit_all(self) -> None:
        self.settle()
        self.commit(1_000)
        for node in self.nodes.values():
            node.member.learn()
            self.deliver(node, 1_000)
        self.settle()

    def close(self) -> None:
        self._patch.undo()
        for task in self.tasks:
            task.cancel()
        self.loop.run_ready()
        self.loop.close()


async def _answered(request: Coroutine[Any, Any, Any]) -> None:
    try:
        await request
    except (ApiError, NotController):
        return
