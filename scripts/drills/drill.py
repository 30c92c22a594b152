"""A drill: its name, what is expected, and what it does. The drills themselves are in the modules beside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from quorate.scripts.cluster.control import Act
from quorate.scripts.drills.environment import DrillEnvironment
from quorate.scripts.drills.outcome import Expectation

#: What holds in every drill.
ALWAYS: Final = (
    Expectation(name="lost_writes", meaning="acknowledged writes that are gone", at_most=0),
    Expectation(
        name="unwritten_ms",
        meaning="time without writes, from a second before the first fault until all was well again, ms",
        at_most=0,
    ),
    Expectation(name="nodes_that_differ", meaning="nodes whose state differs at one offset", at_most=0),
)

#: Measured by ``DrillEnvironment.votes_again``.
VOTES_AGAIN: Final = Expectation(
    name="votes_again_ms", meaning="from its start until the controller votes again, ms", at_most=10_000
)


#: What a drill does to a cluster, which decides where it may be run:
#: ``observes``: nothing but write and look. ``kills``: ends and freezes processes, and lets them run again. ``rigs``:
#: starts them in a way of its own, so that a disk, clock or link can fail, or with settings that it cannot do without.
#: ``destroys``: changes, takes away or replaces files.
DrillKind = Literal["observes", "kills", "rigs", "destroys"]


def never() -> str:
    """Nothing is in the way of a drill."""
    return ""


def as_it_is(environment: DrillEnvironment) -> None:
    """Nothing is other than in any cluster."""


@dataclass(frozen=True, slots=True)
class Drill:
    """One drill.

    Attributes:
        run: does it all in an environment that is steady and written to, and measures; ends with
            ``DrillEnvironment.settle``.
        kind: drills that observe or kill may be run on a cluster that serves others.
        acts: what they do to processes.
        controllers, brokers: of the cluster that is made for it.
        controller_settings, broker_settings: as environment variables without their prefix; `{place}` in a value of a
            controller's is the drill's own directory.
        files: that lie there at the start, by name.
        is_faulty: its controllers' disk, clock and links can be made to fail (``machine_faults``).
        source: of a twin; None: a fresh cluster.
        arrange: called before a process is started; what it changes of them is so from their start on.
        limits_elsewhere: by name of the expectation, where processes run with settings that are not the drill's.
        obstacle: why it is not possible on this machine; empty: it is.
    """

    name: str
    hypothesis: str
    expectations: tuple[Expectation, ...]
    run: Callable[[DrillEnvironment], Awaitable[None]]
    kind: DrillKind
    acts: frozenset[Act] = frozenset()
    controllers: int = 3
    brokers: int = 3
    controller_settings: Mapping[str, str] = field(default_factory=dict)
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    is_faulty: bool = False
    source: Path | None = None
    arrange: Callable[[DrillEnvironment], None] = as_it_is
    limits_elsewhere: Mapping[str, float] = field(default_factory=dict)
    obstacle: Callable[[], str] = never

    @property
    def all_expectations(self) -> tuple[Expectation, ...]:
        return (*self.expectations, *ALWAYS)


def outage(at_most_ms: float) -> Expectation:
    """The time in which nothing could be written, from the first fault until all was well again."""
    return Expectation(name="outage_ms", meaning="longest wait of a write, ms", at_most=at_most_ms)


def healthy_again(at_most_ms: float) -> Expectation:
    """From the fault's end (or the fault itself, where nothing is repaired by hand) to a healthy cluster."""
    return Expectation(name="healthy_again_ms", meaning="until all is well again, ms", at_most=at_most_ms)


KILL: Final[frozenset[Act]] = frozenset({"kill", "start"})
STOP: Final[frozenset[Act]] = frozenset({"stop", "start"})
PAUSE: Final[frozenset[Act]] = frozenset({"pause", "resume"})
