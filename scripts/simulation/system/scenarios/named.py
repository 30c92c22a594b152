"""The named situations: of controllers, beside those of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.scripts.simulation.quorum.checks import NotReached
from quorate.scripts.simulation.system.controller_process import SimulatedController, url_of
from quorate.scripts.simulation.system.scenarios.sessions import (
    cut_off_with_a_slow_clock,
    frozen_past_its_session,
    heartbeats_to_a_deposed_controller,
)
from quorate.scripts.simulation.system.scenarios.stage import SystemStage, depose_unknowing, others_than
from quorate.scripts.simulation.system.story import RunStory, listening
from quorate.scripts.simulation.system.workload import TIMEOUTS_MS, AdminClient


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
    stage.wait(
        "its entry to be sent", lambda: any(_end(node) == _end(active) for node in others_than(stage, active)), 1.0
    )
    assert active.node is not None
    active.node.resign(active.node.epoch)
    stage.world.after_event(active)
    stage.client.urls = [url_of(node.node_id) for node in stage.world.controllers]
    stage.wait("an answer", lambda: stage.client.is_done)


def controller_killed_behind_a_standby(stage: SystemStage) -> None:
    """A standby passed a write on, and the active controller dies before it answers: nobody may call that refused."""
    stage.ask(AdminClient.delete_topic)
    active, standby = stage.active, stage.standbys()[0]
    others, start = others_than(stage, active), _end(active)
    stage.send(AdminClient.create_topics, standby)
    # Heartbeats wait for answers, too: it is the write that must be under way.
    stage.wait("its entry to be durable elsewhere", lambda: any(_durable_end(node) > start for node in others), 1.0)
    if active.controller.pending_replies == 0:
        raise NotReached("the write was answered before the controller could be killed")
    stage.world.crash(active, False)
    stage.wait("an answer", lambda: stage.client.is_done)


def deposed_controller_change(stage: SystemStage) -> None:
    """The active controller is cut off from the others and deposed, and does not know it yet; clients reach all. A
    change that another made undone must not be acknowledged by it because nothing is to be written."""
    stage.ask(AdminClient.configure_first)
    old = stage.active
    depose_unknowing(stage, old)
    stage.ask(AdminClient.configure_second, *others_than(stage, old))
    stage.send(AdminClient.configure_first, old)
    stage.wait("an answer", lambda: stage.client.is_done)


def deposed_controller_refusal(stage: SystemStage) -> None:
    """The same, and it is asked for a topic that is gone: it must not say that there is one."""
    old = stage.active
    depose_unknowing(stage, old)
    stage.ask(AdminClient.delete_topic, *others_than(stage, old))
    stage.send(AdminClient.create_topics, old)
    stage.wait("an answer", lambda: stage.client.is_done)


def frozen_controller_change(stage: SystemStage) -> None:
    """The same with a controller that was frozen before its write was acknowledged. When it wakes up, what waits in its
    HTTP sockets is decided first, and then the acknowledgements in the others commit all that rests on: they are older
    than the request, and confirm nothing."""
    old = stage.active
    others, start = others_than(stage, old), _end(old)
    stage.send(AdminClient.configure_first, old)
    stage.wait("its entry to be sent", lambda: any(_end(node) == _end(old) > start for node in others), 1.0)
    old.freeze()
    if old.controller.pending_replies == 0:
        raise NotReached("the change was answered before its acknowledgements could lie in a socket")
    stage.world.run_for(0.005)
    depose_unknowing(stage, old)
    stage.ask(AdminClient.configure_second, *others)
    stage.send(AdminClient.configure_first, old)
    stage.world.run_for(0.01)
    old.loop.thaw()
    stage.world.run_for(0.005)
    old.thaw()
    stage.wait("an answer", lambda: stage.client.is_done)
    stage.world.run_for(max(TIMEOUTS_MS) / 1000)  # nobody waits any more for what was asked first


def _end(process: SimulatedController) -> int:
    assert process.node is not None
    return process.node.log_end_offset


def _durable_end(process: SimulatedController) -> int:
    assert process.node is not None
    return process.node.status().durable_end


SYSTEM_SCENARIOS: Final[dict[str, Callable[[SystemStage], None]]] = {
    "frozen-controller-read": frozen_controller_read,
    "deposed-controller-change": deposed_controller_change,
    "deposed-controller-refusal": deposed_controller_refusal,
    "frozen-controller-change": frozen_controller_change,
    "write-of-a-resigned-controller": write_of_a_resigned_controller,
    "controller-killed-behind-a-standby": controller_killed_behind_a_standby,
    "cut-off-with-a-slow-clock": cut_off_with_a_slow_clock,
    "frozen-past-its-session": frozen_past_its_session,
    "heartbeats-to-a-deposed-controller": heartbeats_to_a_deposed_controller,
}


def run_system_scenario(name: str, seed: int, story: RunStory | None = None) -> None:
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
