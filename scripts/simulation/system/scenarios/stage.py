"""A simulated system without random faults, and hands to steer it into a situation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.scripts.simulation.quorum.checks import NotReached
from quorate.scripts.simulation.quorum.options import Options
from quorate.scripts.simulation.system.controller_process import SimulatedController, url_of
from quorate.scripts.simulation.system.options import SystemOptions
from quorate.scripts.simulation.system.story import RunStory
from quorate.scripts.simulation.system.workload import AdminClient
from quorate.scripts.simulation.system.world import SystemWorld

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

    def __init__(self, seed: int, story: RunStory | None) -> None:
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

    def ask(self, kind: Callable[[AdminClient], object], *only: SimulatedController) -> None:
        """Let the client ask something of some controllers, and wait until it knows what became of it."""
        self.send(kind, *only)
        self.wait("an answer", lambda: self.client.is_done)

    def send(self, kind: Callable[[AdminClient], object], *only: SimulatedController) -> None:
        """The same without waiting."""
        self.client.urls = [url_of(one.node_id) for one in only or self.world.controllers]
        self.client.ask(kind)  # type: ignore[arg-type]

    @property
    def active(self) -> SimulatedController:
        """The controller that decides."""
        for node in self.world.controllers:
            if not node.is_frozen and node.controller.is_active:
                return node
        raise NotReached(f"no controller is active:\n{self.world.describe()}")

    def standbys(self) -> list[SimulatedController]:
        """The others, ascending."""
        return [node for node in self.world.controllers if node is not self.active]

    def finish(self) -> None:
        """Heal everything, and demand that all comes to rest and was linearizable."""
        self.client.urls = self.world.controller_urls
        self.world.heal()
        self.world.converge()


def depose_unknowing(stage: SystemStage, old: SimulatedController) -> None:
    """Let another controller become active while this one hears nothing from the others, and believes that it is."""
    others, network = others_than(stage, old), stage.world.network
    network.cut |= {(node.node_id, old.node_id) for node in others}
    for node in others:
        # Only the other end notices: these two elect at once.
        network.break_connection(old.node_id, node.node_id)
    stage.wait("another active controller", lambda: any(node.controller.is_active for node in others))
    if not old.controller.is_active:
        raise NotReached("the old controller knows that it was deposed")


def others_than(stage: SystemStage, one: SimulatedController) -> list[SimulatedController]:
    """All other controllers."""
    return [node for node in stage.world.controllers if node is not one]
