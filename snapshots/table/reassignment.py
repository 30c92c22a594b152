"""A reassignment as its partition's lists tell it: its two states, and the steps between (docs/operations.md).

Nothing remembers a reassignment but the adding and the removing replicas of its partition. So its state is derived from
them, here alone, and a step from how they were and how they are. A replica comes by being added, and goes by the step
that ends: what is not in ``STEPS``, or breaks the rule of its step, is no change that a controller makes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, overload

if TYPE_CHECKING:  # commands that only ask do not wait for it to be imported
    import numpy as np
    from numpy.typing import NDArray


class ReassignmentState(Enum):
    """Whether a partition is on its way to other brokers."""

    #: Its replicas are those that it is to have.
    SETTLED = "settled"
    #: Some are being added or removed.
    OPEN = "open"


class ReassignmentStep(Enum):
    """A step of a partition's assignment, as docs/operations.md says it."""

    STARTED = "a reassignment is started: its target comes first in the replicas, and nobody goes yet"
    REPLACED = "another one takes its place, and goes on from the replicas that there are"
    COMPLETED = "all that are added are in the ISR: the target is what remains"
    CANCELLED = "it is cancelled: the replicas without those that were being added"
    MOVED_AT_ONCE = "one that adds nobody who is missing is done with its request"


_S = ReassignmentState
_T = ReassignmentStep

#: What each state becomes by each step.
STEPS: Final[Mapping[ReassignmentState, Mapping[ReassignmentStep, ReassignmentState]]] = {
    _S.SETTLED: {
        _T.STARTED: _S.OPEN,
        _T.MOVED_AT_ONCE: _S.SETTLED,
    },
    _S.OPEN: {
        _T.REPLACED: _S.OPEN,
        _T.COMPLETED: _S.SETTLED,
        _T.CANCELLED: _S.SETTLED,
        _T.MOVED_AT_ONCE: _S.SETTLED,
    },
}


class WrongStep(ValueError):
    """A partition's assignment was changed in a way that no step of a reassignment changes it."""

    def __init__(self, old: Assignment, new: Assignment, why: str) -> None:
        super().__init__(f"no step of a reassignment leads from {old} to {new}: {why}")
        self.old = old
        self.new = new


@overload
def has_moving(adding: int, removing: int) -> bool: ...
@overload
def has_moving(adding: NDArray[Any], removing: NDArray[Any]) -> NDArray[np.bool_]: ...
def has_moving(adding: Any, removing: Any) -> Any:
    """Whether a reassignment is open: of one partition, or of each of many, by its sets as masks."""
    return (adding | removing) != 0


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replicas of a partition, and which of them come and go."""

    replicas: tuple[int, ...]
    #: Ascending.
    adding: tuple[int, ...]
    #: Ascending.
    removing: tuple[int, ...]

    def __str__(self) -> str:
        return f"{list(self.replicas)} adding {list(self.adding)} removing {list(self.removing)}"

    @property
    def state(self) -> ReassignmentState:
        """Whether a reassignment is going on."""
        return ReassignmentState.OPEN if self.adding or self.removing else ReassignmentState.SETTLED

    @property
    def is_open(self) -> bool:
        """The same as a flag."""
        return self.state is ReassignmentState.OPEN

    @property
    def original_replicas(self) -> tuple[int, ...]:
        """The replicas that cancelling leaves. Their order before the reassignment is not known."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that completing leaves."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


def step_between(old: Assignment, new: Assignment, in_sync: Collection[int]) -> ReassignmentStep | None:
    """The step that a change of a partition is, None where its assignment stays.

    Args:
        in_sync: who is in the ISR before the change or after it; an unclean election ends others' membership at once.

    Raises:
        WrongStep: it is none.
    """
    if old == new:
        return None
    step = _ending_step(old, new, in_sync) if new.state is ReassignmentState.SETTLED else _opening_step(old, new)
    if STEPS[old.state].get(step) is not new.state:
        raise WrongStep(old, new, f"not in the state {old.state.name}: {step.name}")
    return step


def _opening_step(old: Assignment, new: Assignment) -> ReassignmentStep:
    came = set(new.replicas).difference(old.replicas)
    if not came <= set(new.adding):
        raise WrongStep(old, new, "a replica comes that is not being added")
    if not set(old.replicas) <= set(new.replicas):
        raise WrongStep(old, new, "a replica goes while the reassignment is open")
    if old.is_open:
        return ReassignmentStep.REPLACED
    if came != set(new.adding):
        raise WrongStep(old, new, "a broker is being added that is a replica already")
    return ReassignmentStep.STARTED


def _ending_step(old: Assignment, new: Assignment, in_sync: Collection[int]) -> ReassignmentStep:
    if not set(new.replicas) <= set(old.replicas):
        raise WrongStep(old, new, "a replica comes that was not being added")
    if old.is_open and new.replicas == old.original_replicas:
        return ReassignmentStep.CANCELLED
    # Of a settled partition from which some go at once, all that remain must be in sync.
    waited_for = old.adding if old.is_open or len(new.replicas) == len(old.replicas) else new.replicas
    missing = sorted(set(waited_for).intersection(new.replicas).difference(in_sync))
    if missing:
        raise WrongStep(old, new, f"it ends without {missing} in the ISR")
    is_target = old.is_open and new.replicas == old.target_replicas
    return ReassignmentStep.COMPLETED if is_target else ReassignmentStep.MOVED_AT_ONCE
