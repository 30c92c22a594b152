"""Named situations of the whole system, brought about step by step: those that random faults find rarely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scripts.simulation.checks import NotReached
from scripts.simulation.options import Options
from scripts.simulation_system.controller_process import ControllerProcess, url_of
from scripts.simulation_system.options import SystemOptions
from scripts.simulation_system.story import Story, listening
from scripts.simulation_system.workload import AdminClient
from scripts.simulation_system.world import SystemWorld

_QUIET: Final = SystemOptions(
    Options(write_rate=0.0, read_rate=0.0, delay_mean=0.0002, disk_delay_mean=0.0001),
    clients=1,
    topics=1,
    request_rate=1e-9,
)
#: Virtual seconds that any single step may take.
_STEP_SECONDS: Final = 10.0


class SystemStage:
    """A started system without random faults, with a topic, and hands to steer it."""

    def __init__(self, seed: int, story: Story | None) -> None:
        self.world = SystemWorld(seed, _QUIET, story)
        self.client: AdminClient = self.world.clients[0]

    def begin(self) -> None:
        """Start everything, and make a topic."""
        self.world.format()
        self.wait("brokers", lambda: all(broker.is_ready for broker in self.world.brokers))
        self.ask(AdminClient.create_topics)

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = _STEP_SECONDS) -> None:
        """Let virtual time pass until ``condition`` holds."""
        if not self.world.run_until(condition, seconds):
            raise NotReached(f"waited {seconds} s in vain for {what}:\n{self.world.describe()}")

    def ask(self, kind: Callable[[AdminClient], object], *only: ControllerProcess) -> None:
        """Let the client ask something of some controllers, and wait until it knows what became of it."""
        self.send(kind, *only)
        self.wait("an answer", lambda: self.client.is_done)

    def send(self, kind: Callable[[AdminClient], object], *only: ControllerProcess) -> None:
        """The same without waiting."""
        self.client.urls = [url_of(one.node_id) for one in only or self.world.controllers]
        self.client.ask(kind)  # type: ignore[arg-type]

    @property
    def active(self) -> ControllerProcess:
        """Who decides."""
        for node in self.world.controllers:
            if not node.is_frozen and node.controller.is_active:
                return node
        raise NotReached(f"no controller is active:\n{self.world.describe()}")

    def standbys(self) -> list[ControllerProcess]:
        """The others, ascending."""
        return [node for node in self.world.controllers if node is not self.active]

    def finish(self) -> None:
        """Heal everything, and demand that all comes to rest and was linearizable."""
        self.client.urls = list(self.world.wire.servers)
        self.world.heal()
        self.world.converge()


def frozen_controller_read(stage: SystemStage) -> None:
    """The active controller is frozen and deposed; a linearizable read that waits in its socket must not be stale."""
    old = stage.active
    old.freeze()
    others = [node for node in stage.world.controllers if node is not old]
    stage.wait("another active controller", lambda: any(node.controller.is_active for node in others))
    stage.ask(AdminClient.add_partitions, *others)
    stage.ask(AdminClient.delete_topic, *others)
    stage.send(AdminClient.read_topic, old)
    stage.world.run_for(0.01)
    # Its HTTP sockets are read before those of the quorum.
    old.loop.thaw()
    stage.world.run_for(0.005)
    old.thaw()
    stage.wait("an answer", lambda: stage.client.is_done)


def write_of_a_resigned_controller(stage: SystemStage) -> None:
    """Leadership is given up with a write under way that commits all the same: it must not count as refused."""
    stage.ask(AdminClient.delete_topic)
    active = stage.active
    stage.send(AdminClient.create_topics, active)
    stage.wait("the write to be under way", lambda: active.controller.pending_replies > 0, 1.0)
    stage.wait("its entry to be sent", lambda: any(_end(node) == _end(active) for node in _others(stage, active)), 1.0)
    assert active.node is not None
    active.node.resign(active.node.epoch)
    stage.world.after_event(active)
    stage.client.urls = [url_of(node.node_id) for node in stage.world.controllers]
    stage.wait("an answer", lambda: stage.client.is_done)


def controller_killed_behind_a_standby(stage: SystemStage) -> None:
    """A standby passed a write on, and the active controller dies before it answers: nobody may call that refused."""
    stage.ask(AdminClient.delete_topic)
    active, standby = stage.active, stage.standbys()[0]
    stage.send(AdminClient.create_topics, standby)
    stage.wait("the write to be under way", lambda: active.controller.pending_replies > 0, 1.0)
    stage.wait("its entry to be sent", lambda: any(_end(node) == _end(active) for node in _others(stage, active)), 1.0)
    stage.world.crash(active, False)
    stage.wait("an answer", lambda: stage.client.is_done)


def _others(stage: SystemStage, one: ControllerProcess) -> list[ControllerProcess]:
    return [node for node in stage.world.controllers if node is not one]


def _end(process: ControllerProcess) -> int:
    assert process.node is not None
    return process.node.log_end_offset


SYSTEM_SCENARIOS: Final[dict[str, Callable[[SystemStage], None]]] = {
    "frozen-controller-read": frozen_controller_read,
    "write-of-a-resigned-controller": write_of_a_resigned_controller,
    "controller-killed-behind-a-standby": controller_killed_behind_a_standby,
}


def run_system_scenario(name: str, seed: int, story: Story | None = None) -> None:
    """Bring a situation about.

    Raises:
        Violation: a promise was broken. NotReached: the situation did not come about.
    """
    stage = SystemStage(seed, story)
    with listening(story):
        try:
            stage.begin()
            SYSTEM_SCENARIOS[name](stage)
            stage.finish()
        finally:
            stage.world.close()
