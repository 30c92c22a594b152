"""Tables of states as literals: for each state the states that follow on it. An edge that is not there is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class WrongTransition(RuntimeError):
    """Something is said to have happened in a state where it cannot: a mistake in the code. Nothing was changed."""

    def __init__(self, state: Enum, event: Enum) -> None:
        super().__init__(f"not in the state {state.name}: {event.name} ({event.value})")
        self.state = state
        self.event = event


def next_state(table: Mapping[State, Mapping[Event, State]], state: State, event: Event) -> State:
    """The state that follows on ``state``.

    Raises:
        WrongTransition: there is no such edge.
    """
    following = table[state].get(event)
    if following is None:
        raise WrongTransition(state, event)
    return following
