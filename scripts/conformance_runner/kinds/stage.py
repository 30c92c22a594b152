"""One active controller on a log in memory, with a clock that moves only when it is told to.

Nothing happens by itself here: timers never fire, and what a controller does periodically is done when a scenario says
so. Everything else is production: events, decisions, encoding, replay, soft state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.process.composition import Machine, compose
from quorate.controller.process.settings_parts import default_parts
from quorate.metadata_log.batches.batch import data_batch, iter_records
from quorate.metadata_log.records.records import TopicRecord, VersionedRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.scripts.conformance_runner.names import Names
from quorate.scripts.conformance_runner.record_form import Form, record_form, record_of_form

#: Of the log that a scenario begins with, and of the controller's own.
_FIRST_EPOCH, _EPOCH = 1, 2


class StoppedClock:
    """``controller.engine.event_queue.Scheduler``: the loop's turns, but a time of its own."""

    def __init__(self) -> None:
        self.now_ms = 0

    def call_soon(self, callback: Callable[[], None]) -> None:
        """In the next turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> StoppedClock:
        """Never."""
        return self

    def cancel(self) -> None:
        """``controller.engine.event_queue.Timer``."""

    def monotonic_ms(self) -> float:
        """The scenario's time."""
        return self.now_ms

    def wall_ms(self) -> int:
        """The same: no record of these scenarios has a time in it."""
        return self.now_ms


class KeptFaults:
    """``controller.engine.faults.FaultHandler``: a fault is kept; the step that it happened in has failed."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def fault(self, what: str, error: Exception) -> None:
        """Something is wrong."""
        self.sentences.append(f"fault in {what}: {error!r}")

    def fatal(self, what: str, error: Exception) -> None:
        """Something is wrong, and nothing more will come."""
        self.fault(what, error)
        raise AssertionError(self.sentences[-1]) from error


class ScenarioStage:
    """The controller of one scenario; belongs to the running loop."""

    def __init__(self, settings: Form) -> None:
        self.names = Names()
        self.clock = StoppedClock()
        parts = default_parts(settings["controller_node_id"], settings["cluster_id"])
        self.config = replace(
            parts.config,
            session_timeout_ms=settings["session_timeout_ms"],
            default_num_partitions=settings["default_num_partitions"],
            default_replication_factor=settings["default_replication_factor"],
            static_configs=MappingProxyType(settings["static_config"]),
        )
        self.faults = KeptFaults()
        self.log = LogInMemory(self.clock)
        machine = Machine(self.clock, self.faults, JavaRandom(0), self.names.new_topic_id)
        self.controller, self.role, self.operations = compose(
            self.config, replace(parts.role, idle_noop_interval_ms=0), parts.limits, (), self.log, machine
        )
        self.log.controllers = (self.controller,)
        self._first_records = [record_of_form(form) for form in settings["bootstrap_records"]]
        self._batches_seen = 0

    async def begin(self) -> None:
        """Replay what the log begins with, then lead."""
        self.log.write(_FIRST_EPOCH, data_batch([(r.record, r.version) for r in self._first_records], 0))
        await asyncio.sleep(0)
        self.log.leader_id = self.config.node_id
        self.controller.on_leader_change(self.config.node_id, _EPOCH)
        # Activation has nothing to write on such a log; if it had, the first step would show it.
        self._batches_seen = len(self.log.batches)

    def end(self) -> None:
        """Nothing is waiting any more."""
        self.controller.close()

    def take_records(self) -> list[Form]:
        """The records written since the last call, as they lie in the log; new topics get their names."""
        batches = self.log.batches[self._batches_seen :]
        self._batches_seen += len(batches)
        records = [record for batch in batches for record in iter_records(batch)]
        for logged in records:
            if isinstance(logged.record, TopicRecord):
                self.names.topic_created(logged.record.topic_id)
        return [record_form(VersionedRecord(logged.record, logged.version), self.names) for logged in records]
