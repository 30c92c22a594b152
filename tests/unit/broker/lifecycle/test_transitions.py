"""The table of a broker's states: the page shows it, the lifecycle takes each of its edges, and no other is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from quorate.broker.host import lifecycle_timing
from quorate.broker.lifecycle.lifecycle import BrokerLifecycle, NothingAsked, SendRegistration
from quorate.broker.lifecycle.transitions import (
    TRANSITIONS,
    LifecycleEvent,
    LifecycleState,
)
from quorate.broker.settings import LifecycleSettings
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.transitions import WrongTransition, next_state

PAGE = Path(__file__).parents[4] / "docs" / "operations.md"
OVER = [LifecycleState.STOPPED, LifecycleState.FAILED]
LIVING = [state for state in LifecycleState if state not in OVER]
INCARNATION = b"incarnation-0001"
Edge = tuple[LifecycleState, LifecycleEvent]


def drawn() -> str:
    """The table as the page has it: a line for each event, a column for each state that anything leads on from."""
    lines = [["what happens", *(state.value for state in LIVING)], ["---"] * (1 + len(LIVING))]
    for event in LifecycleEvent:
        following = [TRANSITIONS[state].get(event) for state in LIVING]
        lines.append([event.value, *("" if state is None else state.value for state in following)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines).replace("|  |", "| |").replace("|  |", "| |")


class Traced(BrokerLifecycle):
    """Notes the edges that it takes."""

    def __init__(self, chance: Random) -> None:
        super().__init__(11, INCARNATION, lifecycle_timing(LifecycleSettings()), now_ms=0.0, draw=chance.random)
        self.edges: set[Edge] = set()

    def _take(self, event: LifecycleEvent) -> None:
        self.edges.add((self.state, event))
        super()._take(event)


def live(seed: int) -> set[Edge]:
    """One broker's life among controllers that may say anything at any time; the edges that it took."""
    chance = Random(seed)
    machine, now_ms = Traced(chance), 0.0
    for _ in range(60):
        now_ms += chance.choice((0.0, 10.0, 2_000.0, 2_000.0, 40_000.0))
        command = machine.next_command(now_ms)
        if command is not None and chance.random() < 0.1:
            happen(machine, now_ms, chance)
        if command is None or chance.random() < 0.2:
            happen(machine, now_ms, chance)
        if command is not None:
            answer(machine, now_ms, chance, is_registration=isinstance(command, SendRegistration))
    return machine.edges


def happen(machine: BrokerLifecycle, now_ms: float, chance: Random) -> None:
    """Something that does not come from an answer; an end is rare."""
    kind = chance.choices(range(5), [10, 10, 4, 1, 1])[0]
    if kind == 0:
        machine.ready_to_unfence(now_ms)
    elif kind == 1:
        machine.register_again(now_ms)
    elif kind == 2:
        machine.begin_shutdown(now_ms)
    elif kind == 3:
        machine.lost_all_directories()
    else:
        machine.saw_registration(machine.broker_epoch + 1, b"incarnation-0002")


def answer(machine: BrokerLifecycle, now_ms: float, chance: Random, *, is_registration: bool) -> None:
    """The request that is out comes to its end."""
    if chance.random() < 0.2:
        code = chance.choice((None, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT))
        machine.failed(now_ms, code, "refused")
    elif is_registration:
        machine.answered_registration(now_ms, machine.broker_epoch + 8)
    else:
        is_caught_up, is_fenced, may_leave = (chance.random() < 0.5 for _ in range(3))
        machine.answered_heartbeat(now_ms, is_caught_up=is_caught_up, is_fenced=is_fenced, should_shut_down=may_leave)


def in_state(state: LifecycleState) -> BrokerLifecycle:
    """A broker that came there, with no request out."""
    machine = BrokerLifecycle(11, INCARNATION, lifecycle_timing(LifecycleSettings()), now_ms=0.0, draw=lambda: 0.0)
    machine.next_command(0.0)
    if state is LifecycleState.REGISTERING:
        return machine
    machine.answered_registration(0.0, 7)
    machine.next_command(0.0)
    if state in (LifecycleState.FENCED, LifecycleState.RUNNING):
        is_fenced = state is LifecycleState.FENCED
        machine.answered_heartbeat(0.0, is_caught_up=True, is_fenced=is_fenced, should_shut_down=False)
    elif state is LifecycleState.CONTROLLED_SHUTDOWN:
        machine.begin_shutdown(0.0)
    assert machine.state is state
    return machine


def seen(machine: BrokerLifecycle) -> dict[str, object]:
    """All that it remembers."""
    return {name: str(value) for name, value in vars(machine).items()}


def test_page_shows_the_table() -> None:
    assert drawn() in PAGE.read_text(encoding="utf-8"), f"docs/operations.md lacks this table:\n{drawn()}"


def test_lives_of_brokers_take_every_edge_of_the_table() -> None:
    """None is there for show; and none that is missing is ever wanted, or a life would end in an error."""
    taken: set[Edge] = set().union(*(live(seed) for seed in range(400)))

    assert taken == {(state, event) for state, edges in TRANSITIONS.items() for event in edges}


def test_edge_that_is_not_in_the_table_is_refused_with_both_names() -> None:
    missing = [
        (state, event) for state in LifecycleState for event in LifecycleEvent if event not in TRANSITIONS[state]
    ]

    for state, event in missing:
        with pytest.raises(WrongTransition) as refused:
            next_state(TRANSITIONS, state, event)
        assert (refused.value.state, refused.value.event) == (state, event)
        assert state.name in str(refused.value)
        assert event.name in str(refused.value)


def test_state_that_is_the_end_leads_nowhere() -> None:
    assert [state for state, edges in TRANSITIONS.items() if not edges] == OVER


@pytest.mark.parametrize("state", [state for state in LIVING if state is not LifecycleState.REGISTERING])
def test_registration_of_a_registered_broker_is_refused_and_changes_nothing(state: LifecycleState) -> None:
    machine = in_state(state)
    machine.next_command(10_000.0)  # a heartbeat is out
    before = seen(machine)

    with pytest.raises(WrongTransition, match=f"{state.name}.*REGISTERED"):
        machine.answered_registration(1.0, 40)
    assert seen(machine) == before


def test_answer_to_a_heartbeat_that_no_registered_broker_sent_is_refused_and_changes_nothing() -> None:
    machine = in_state(LifecycleState.REGISTERING)
    before = seen(machine)

    with pytest.raises(WrongTransition, match=r"REGISTERING.*UNFENCED"):
        machine.answered_heartbeat(
            1.0, is_caught_up=True, is_fenced=False, should_shut_down=False, told_failed=[b"directory-000001"]
        )
    assert seen(machine) == before


@pytest.mark.parametrize("state", [LifecycleState.FENCED, LifecycleState.RUNNING])
def test_answer_that_nobody_waits_for_is_refused_and_changes_nothing(state: LifecycleState) -> None:
    """One that came twice would extend the session from when an older heartbeat was sent."""
    machine = in_state(state)
    before = seen(machine)
    reports: dict[str, Callable[[], None]] = {
        "an answer to a heartbeat": lambda: machine.answered_heartbeat(
            1.0, is_caught_up=True, is_fenced=False, should_shut_down=False, session_ms=9_000
        ),
        "an answer to a registration": lambda: machine.answered_registration(1.0, 40),
        "the failure of a request": lambda: machine.failed(1.0, ErrorCode.STALE_BROKER_EPOCH, "who are you"),
    }
    for what, report in reports.items():
        with pytest.raises(NothingAsked, match=f"broker 11 is {state.value}: {what}, and none is out"):
            report()
        assert seen(machine) == before
