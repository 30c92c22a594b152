"""Named situations of brokers whose sessions end: what they count on must have ended before."""

from __future__ import annotations

from typing import Final

from quorate.broker.lifecycle import lease
from quorate.scripts.simulation.system.broker_process import BrokerProcess
from quorate.scripts.simulation.system.controller_process import SESSION_TIMEOUT_MS, SimulatedController
from quorate.scripts.simulation.system.scenarios.stage import SystemStage

#: The slowest clock of the random runs, beside controllers whose clocks are right.
_SLOW: Final = 0.9
#: Seconds in which a controller is not the active one, and says nothing; less than a session.
_DEPOSED: Final = 1.05


def cut_off_with_a_slow_clock(stage: SystemStage) -> None:
    """A broker whose clock is slow hears nothing more, right after it was promised as much as there is."""
    broker = _slow_broker(stage)
    most_ms = lease.LEASE_SHARE * SESSION_TIMEOUT_MS
    stage.wait("a long promise", lambda: broker.counts_on_session_ms(_epoch(broker)) > 0.95 * most_ms)
    _cut_off_until_it_is_fenced(stage, broker, stage.world.controllers)


def heartbeats_to_a_deposed_controller(stage: SystemStage) -> None:
    """A broker reaches only a controller that is frozen and deposed. When it goes on, it answers what waits in its HTTP
    sockets before it reads that it leads no more."""
    broker, old = _slow_broker(stage), stage.active
    others = [node for node in stage.world.controllers if node is not old]
    stage.world.network.cut |= _between(broker, others)
    old.freeze()
    stage.wait("another active controller", lambda: any(node.controller.is_active for node in others))
    stage.world.run_for(_DEPOSED)
    old.loop.thaw()
    stage.world.run_for(0.01)
    old.thaw()
    _cut_off_until_it_is_fenced(stage, broker, stage.world.controllers)


def frozen_past_its_session(stage: SystemStage) -> None:
    """A leader is stopped until others lead in its place, and goes on: its heartbeat is answered before it has read
    who leads."""
    broker = _slow_broker(stage)
    loop = broker.loop
    assert loop is not None
    loop.freeze()
    seen = stage.world.checks.sessions_ended
    stage.wait("its session's end", lambda: stage.world.checks.sessions_ended > seen)
    feeds = [node.node_id for node in stage.standbys()]
    loop.thaw()
    stage.world.network.cut |= {(broker.broker_id, one) for one in feeds}
    stage.wait("its session", lambda: broker.is_ready and broker.counts_on_session_ms(_epoch(broker)) > 0)


def _slow_broker(stage: SystemStage) -> BrokerProcess:
    broker = stage.world.brokers[0]
    broker.kill()
    broker.start(rate=_SLOW)
    stage.wait("its session", lambda: broker.is_ready and broker.counts_on_session_ms(_epoch(broker)) > 0)
    return broker


def _epoch(broker: BrokerProcess) -> int:
    assert broker.host is not None
    return broker.host.sessions[broker.broker_id].lifecycle.broker_epoch


def _cut_off_until_it_is_fenced(stage: SystemStage, broker: BrokerProcess, judges: list[SimulatedController]) -> None:
    """The check of the committed log compares the moments."""
    cut = _between(broker, judges)
    stage.world.network.cut |= cut
    seen = stage.world.checks.sessions_ended
    stage.wait("its session's end", lambda: stage.world.checks.sessions_ended > seen)
    stage.world.network.cut -= cut


def _between(broker: BrokerProcess, controllers: list[SimulatedController]) -> set[tuple[int, int]]:
    pairs = [(broker.broker_id, node.node_id) for node in controllers]
    return {*pairs, *((to, source) for source, to in pairs)}
