"""The checker of histories, first on histories that are known to be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random

import pytest

from quorate.scripts.simulation.system.linearizability import Impossible, TimedCall, Undecided, check
from quorate.scripts.simulation.system.topic_register import (
    Action,
    Configure,
    Create,
    Delete,
    Found,
    Grow,
    Labelled,
    Missing,
    NoSmaller,
    ReadTopic,
    State,
    Swap,
    TopicState,
    register_of,
)

ONE, OTHER = b"1" * 16, b"2" * 16
NEVER = math.inf


def calls(*said: tuple[float, float, Action]) -> list[TimedCall[Action]]:
    return [TimedCall(called, answered, action) for called, answered, action in said]


def is_linearizable(history: Sequence[TimedCall[Action]]) -> bool:
    ids = frozenset(c.action.topic_id for c in history if isinstance(c.action, Create) and c.action.topic_id)
    return check(history, None, register_of(ids)).is_linearizable


def created(topic_id: bytes = ONE, partitions: int = 1, value: str | None = None) -> Create:
    return Create(partitions, value, topic_id)


def saw(topic_id: bytes = ONE, partitions: int = 1, value: str | None = None) -> ReadTopic:
    return ReadTopic(TopicState(topic_id, partitions, value))


WRONG = {
    "stale read after a write": calls((0, 1, created()), (2, 3, Configure("a")), (4, 5, saw())),
    "stale read after a creation": calls((0, 1, created()), (2, 3, ReadTopic(None))),
    "lost write": calls((0, 1, created()), (2, 3, Configure("a")), (4, 5, Configure("b")), (6, 7, saw(value="a"))),
    "lost creation": calls((0, 1, created()), (2, 3, created(OTHER))),
    "double creation at the same time": calls((0, 3, created()), (1, 2, created(OTHER))),
    "read of the future": calls((0, 1, created()), (2, 3, saw(value="a")), (4, 5, Configure("a"))),
    "read of what nobody wrote": calls((0, 1, created()), (2, 3, saw(value="x"))),
    "read that goes back": calls(
        (0, 1, created()), (2, 9, Configure("a")), (3, 4, saw(value="a")), (5, 6, saw(value=None))
    ),
    "two readers see two orders": calls(
        (0, 1, created()),
        (2, 9, Configure("a")),
        (2, 9, Configure("b")),
        (10, 11, saw(value="a")),
        (12, 13, saw(value="b")),
    ),
    "deleted and seen": calls((0, 1, created()), (2, 3, Delete()), (4, 5, saw())),
    "exists already, after its deletion": calls((0, 1, created()), (2, 3, Delete()), (4, 5, Found())),
    "exists already, before anybody made it": calls((0, 1, Found()), (2, 3, created())),
    "unknown, after its creation": calls((0, 1, created()), (2, 3, Missing())),
    "unknown id, while it has that": calls((0, 1, created()), (2, 3, Missing(ONE))),
    "as many partitions already, before it grew": calls((0, 1, created()), (2, 3, NoSmaller(2)), (4, 5, Grow(2))),
    "a change was done already, and another undid it before": calls(
        (0, 1, created()),
        (2, 3, Configure("a")),
        (4, 5, Configure("b")),
        (6, 7, Configure("a")),
        (8, 9, saw(value="b")),
    ),
    "deleted twice": calls((0, 1, created()), (2, 3, Delete()), (4, 5, Delete())),
    "deleted under an id that another has": calls((0, 1, created()), (2, 3, Delete(OTHER))),
    "grown while it was not there": calls((0, 1, Grow(2)), (2, 3, created())),
    "shrunk": calls((0, 1, created(partitions=3)), (2, 3, Grow(2))),
    "seen under an id that was never given to it": calls((0, 1, created()), (2, 3, saw(OTHER))),
    "seen before the unanswered creation was sent": calls((5, NEVER, Create(1, None)), (2, 3, saw())),
    "an unanswered creation does not bring back the topic of an answered one": calls(
        (0, 1, created()), (2, 3, Delete()), (4, NEVER, Create(1, None)), (5, 6, saw())
    ),
    "an unanswered change happens once": calls(
        (0, 1, created()),
        (2, NEVER, Configure("a")),
        (3, 4, saw(value="a")),
        (5, 6, Configure("b")),
        (7, 8, saw(value="a")),
    ),
    "two swap what only one could find": calls((0, 1, created()), (2, 5, Swap(None, "a")), (3, 4, Swap(None, "b"))),
    "swapped for what it is not": calls((0, 1, created()), (2, 3, Swap("a", "b"))),
    "refused a swap for a label that it has not yet": calls(
        (0, 1, created()), (2, 3, Labelled("a")), (4, 5, Swap(None, "a"))
    ),
    "labelled, and not there": calls((0, 1, Swap(None, "a")), (2, 3, created())),
    "a label outlives its topic": calls(
        (0, 1, created()), (2, 3, Swap(None, "a")), (4, 5, Delete()), (6, 7, created(OTHER)), (8, 9, Labelled("a"))
    ),
    "an unanswered creation has one id": calls((0, NEVER, Create(1, None)), (1, 2, saw(ONE)), (3, 4, saw(OTHER))),
}

RIGHT = {
    "nothing": [],
    "one after the other": calls((0, 1, created()), (2, 3, Grow(4)), (4, 5, saw(partitions=4)), (6, 7, Delete())),
    "a read beside a write, before it": calls((0, 1, created()), (2, 5, Configure("a")), (3, 4, saw())),
    "a read beside a write, after it": calls((0, 1, created()), (2, 5, Configure("a")), (3, 4, saw(value="a"))),
    "called while another is answered": calls((0, 1, created()), (1, 2, ReadTopic(None))),
    "refusals that say how it is": calls(
        (0, 1, Missing()),
        (2, 3, created(partitions=3)),
        (4, 5, Found()),
        (6, 7, NoSmaller(3)),
        (8, 9, Missing(OTHER)),
        (10, 11, Delete()),
        (12, 13, Missing(ONE)),
    ),
    "a refusal beside what it speaks of, before it": calls((0, 1, created()), (2, 5, Delete()), (3, 4, Found())),
    "a refusal beside what it speaks of, after it": calls((0, 1, created()), (2, 5, Delete()), (3, 4, Missing())),
    "made again": calls((0, 1, created()), (2, 3, Delete()), (4, 5, created(OTHER)), (6, 7, saw(OTHER))),
    "unanswered, and took effect late": calls(
        (0, 1, created()), (2, NEVER, Configure("a")), (3, 4, saw()), (9, 10, saw(value="a"))
    ),
    "two swap one after the other": calls(
        (0, 1, created()),
        (2, 5, Swap(None, "a")),
        (3, 4, Swap("a", "b")),
        (6, 7, Labelled("b")),
        (8, 9, Swap("b", None)),
    ),
    "no label where no topic is": calls((0, 1, Labelled(None)), (2, 3, Swap(None, None)), (4, 5, Missing())),
    "an unanswered swap that found another label did nothing": calls(
        (0, 1, created()), (2, NEVER, Swap("a", "b")), (3, 4, Swap(None, "c")), (5, 6, Labelled("c"))
    ),
    "unanswered, and never took effect": calls((0, 1, created()), (2, NEVER, Delete()), (9, 10, saw())),
    "unanswered creation, seen": calls((0, NEVER, Create(2, "a")), (3, 4, saw(OTHER, 2, "a")), (5, 6, Delete(OTHER))),
    "unanswered deletion between two creations": calls(
        (0, 1, created()), (2, NEVER, Delete()), (3, 4, created(OTHER)), (5, 6, saw(OTHER))
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_history_known_to_be_wrong_is_refused(name: str) -> None:
    assert not is_linearizable(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_history_known_to_be_right_is_accepted(name: str) -> None:
    assert is_linearizable(RIGHT[name])


def test_verdict_of_a_wrong_history_names_the_calls_that_no_order_explains() -> None:
    history = WRONG["lost creation"]

    verdict = check(history, None, register_of(frozenset({ONE, OTHER})))

    assert len(verdict.order) == 1
    assert len(verdict.left) == 1
    assert {*verdict.order, *verdict.left} == set(history)


def test_verdict_of_a_right_history_is_an_order_that_gives_every_outcome() -> None:
    verdict = check(RIGHT["made again"], None, register_of(frozenset({ONE, OTHER})))

    state: State = None
    for call in verdict.order:
        state = register_of(frozenset({ONE, OTHER}))(state, call.action)
    assert state == TopicState(OTHER, 1, None)


def test_search_that_takes_too_long_is_given_up_and_not_called_right() -> None:
    history = calls(*[(0, NEVER, Configure(str(n))) for n in range(12)], (0, 1, created()), (2, 3, saw(value="no")))

    with pytest.raises(Undecided):
        check(history, None, register_of(frozenset({ONE})), steps_max=100)


def by_trying_all(history: Sequence[TimedCall[Action]]) -> bool:
    """Every order of every choice of the unanswered calls."""
    ids = frozenset(c.action.topic_id for c in history if isinstance(c.action, Create) and c.action.topic_id)
    step = register_of(ids)
    known = [call for call in history if call.is_known]
    unknown = [call for call in history if not call.is_known]
    chosen = (known + list(some) for n in range(len(unknown) + 1) for some in combinations(unknown, n))
    return any(explains(step, order) for some in chosen for order in permutations(some))


def explains(step: object, order: Sequence[TimedCall[Action]]) -> bool:
    assert callable(step)
    for at, call in enumerate(order):
        if any(later.answered < call.called for later in order[at + 1 :]):
            return False
    state: State = None
    try:
        for call in order:
            state = step(state, call.action)
    except Impossible:
        return False
    return True


def random_action(rng: Random, number: int, *, is_answered: bool) -> Action:
    topic_id = rng.choice((ONE, OTHER))
    value = rng.choice((None, "a"))
    kinds: list[Action] = [
        Create(rng.choice((1, 2)), value, bytes([number]) * 16 if is_answered and rng.random() < 0.4 else None),
        Create(1, value, topic_id if is_answered else None),
        Delete(rng.choice((None, topic_id))),
        Grow(2),
        Configure(value),
        Swap(value, rng.choice((None, "a"))),
    ]
    if is_answered:
        kinds += [ReadTopic(None), ReadTopic(TopicState(topic_id, rng.choice((1, 2)), value)), Labelled(value)] * 2
    return rng.choice(kinds)


def random_history(seed: int) -> list[TimedCall[Action]]:
    rng = Random(seed)
    history = []
    for number in range(rng.randint(2, 5)):
        begun = rng.uniform(0, 10)
        ended = begun + rng.uniform(0, 6) if rng.random() < 0.75 else NEVER
        history.append(TimedCall(begun, ended, random_action(rng, number, is_answered=ended != NEVER)))
    return history


def test_small_histories_are_judged_as_by_trying_all_orders() -> None:
    """Answered creations without an id, which a register of unknown id stands for, are among them."""
    verdicts = []
    for seed in range(1_500):
        history = random_history(seed)
        expected = by_trying_all(history)
        assert is_linearizable(history) == expected, f"seed {seed}: {history}"
        verdicts.append(expected)

    assert 150 < sum(verdicts) < 1_350
