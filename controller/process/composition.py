"""A controller and its role, put together: the only place where that is done.

What a process has around them is ``controller.process.assembly``; whoever needs the decisions alone (benchmarks,
conformance runs, tests, the rehearsal of a process that starts) begins here, over a quorum of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.random_source import RandomSource
from quorate.controller.engine.event_queue import Scheduler
from quorate.controller.engine.faults import FaultHandler
from quorate.controller.engine.interfaces import ControllerLimits, Quorum
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.active_role import ActiveRole, RoleSettings
from quorate.controller.operations.operations import Operations
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import VersionedRecord

F_co = TypeVar("F_co", bound=FaultHandler, covariant=True)


@dataclass(frozen=True, slots=True)
class Machine(Generic[F_co]):
    """The clock, faults, chance and ids of the machine that a controller runs on, or of a simulated one."""

    #: Clock, timers, and the loop that everything runs on.
    scheduler: Scheduler
    #: Where its faults go; a whole process reports more there than decisions alone (``NodeFaults``).
    faults: F_co
    random: RandomSource
    new_id: Callable[[], Uuid]


class Composed(NamedTuple):
    """A controller that has not been told of any leader yet."""

    controller: QuorumController
    role: ActiveRole
    operations: Operations


def compose(
    config: ControllerConfig,
    settings: RoleSettings,
    limits: ControllerLimits,
    bootstrap: tuple[VersionedRecord, ...],
    quorum: Quorum,
    machine: Machine[FaultHandler],
) -> Composed:
    """A controller over ``quorum``, with the number that ``config`` gives it.

    ``bootstrap``: what the first leader of an empty log writes at its head.
    """
    role = ActiveRole(config, settings, bootstrap, machine.random, machine.new_id)
    controller = QuorumController(config.node_id, quorum, role, machine.scheduler, machine.faults, limits)
    role.bind(controller)
    return Composed(controller, role, Operations(controller, role))
