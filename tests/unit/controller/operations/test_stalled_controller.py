"""A controller that was stopped or held up itself does not take that for silence of the brokers."""

from __future__ import annotations

from quorate.controller.brokers.session_order import Session
from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.process.composition import Machine, compose
from quorate.metadata_log.batches.batch import data_batch
from quorate.metadata_log.records.records import FeatureLevelRecord, Record, RegisterBrokerRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.default_parts import controller_config, controller_limits, role_settings
from tests.guards.sound_images import watch
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import uuid

SESSION_MS = 9_000.0
HEARTBEAT_MS = 2_000.0


class Controller:
    """Active, under virtual time, with two unfenced brokers whose sessions begin now."""

    def __init__(self) -> None:
        self.scheduler = ManualScheduler()
        log = LogInMemory(self.scheduler)
        config = controller_config(node_id=9, cluster_id="c", session_timeout_ms=int(SESSION_MS))
        machine = Machine(self.scheduler, RecordingFaults(), JavaRandom(1), lambda: uuid(3, 0))
        self.quorum, self.role, _ = compose(config, role_settings(), controller_limits(), (), log, machine)
        log.controllers = (self.quorum,)
        watch(lambda: self.quorum.stable)
        records: list[tuple[Record, int]] = [(FeatureLevelRecord("metadata.version", 30), 0)]
        records += [
            (RegisterBrokerRecord(broker_id=broker, broker_epoch=broker, fenced=False, log_dirs=(uuid(2, broker),)), 4)
            for broker in (0, 1)
        ]
        log.write(1, data_batch(records, 0))
        self.scheduler.run()
        log.leader_id = 9
        self.quorum.on_leader_change(9, 2)
        self.scheduler.run()

    def run(self, seconds: int, *speaking: int) -> None:
        """Time passes, and these brokers send heartbeats."""
        for _ in range(int(seconds * 1000 / HEARTBEAT_MS)):
            self.scheduler.advance(HEARTBEAT_MS)
            for broker in speaking:
                self.role.note_contact(Session(broker, broker))

    def stall(self, seconds: int) -> None:
        """SIGSTOP, and SIGCONT later: timers act before the sockets are read."""
        self.scheduler.now_ms += seconds * 1000
        self.scheduler.advance(0)

    def fenced(self) -> list[int]:
        return [broker.id for broker in self.quorum.stable.cluster.brokers.values() if broker.is_fenced]


def test_stalled_controller_woken_fences_no_broker_that_speaks() -> None:
    controller = Controller()
    controller.run(10, 0, 1)

    controller.stall(18)
    assert controller.fenced() == []

    controller.run(30, 0, 1)
    assert controller.fenced() == []


def test_stalled_controller_woken_fences_nobody_where_the_timer_that_fences_acts_before_the_watch() -> None:
    controller = Controller()
    controller.run(8, 0, 1)
    # The watch has just looked, and the sessions are to be looked at next: at the end of those that began at 0.
    controller.scheduler.advance(SESSION_MS - controller.scheduler.now_ms + 0.5)

    controller.stall(18)
    assert controller.fenced() == []

    controller.run(30, 0, 1)
    assert controller.fenced() == []


def test_stalled_controller_woken_still_fences_a_broker_that_is_dead() -> None:
    controller = Controller()
    controller.run(10, 0, 1)

    controller.stall(18)
    controller.run(4, 0)
    assert controller.fenced() == []
    controller.run(6, 0)

    assert controller.fenced() == [1]


def test_controller_that_keeps_time_fences_a_silent_broker_after_its_session() -> None:
    controller = Controller()

    controller.run(8, 0)
    assert controller.fenced() == []
    controller.run(2, 0)

    assert controller.fenced() == [1]
