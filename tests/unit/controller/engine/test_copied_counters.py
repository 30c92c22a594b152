"""What a scrape shows is made on a thread: of copies, in which nothing changes while the loop goes on counting."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.failed_proofs import BURST
from quorate.controller.engine.head_counters import KINDS, HeadCounts


def counters() -> Counters:
    made = Counters(event_timeouts={"a": 1}, quorum={"b": 2}, fetched_records=3)
    made.events.note("create_topics", 1.0, 2.0)
    made.election_latency.note(0.2)
    made.standstills.note(0.1, 0.1)
    made.note_answer(("GET /v1/status", 200))
    for _ in range(BURST):
        made.failed_proofs.note("bearer", "127.0.0.1", 5.0)
    return made


def head_counts() -> HeadCounts:
    made = HeadCounts(unclean_elections=4)
    made.elections[KINDS[0]] = 7
    made.election_times[KINDS[0]].note(0.1)
    made.commit_times.note(0.01)
    return made


def held(thing: Any) -> Iterator[Any]:
    """All that may change and is reached from a thing: what immutable types and modules refer to is not followed."""
    seen, waiting = set[int](), [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, str, bytes, int, float, type(None))):
            continue
        seen.add(id(one))
        if not isinstance(one, tuple):
            yield one
        waiting += gc.get_referents(one)


def said(thing: Any) -> Any:
    """Everything that it holds, to compare."""
    if isinstance(thing, dict):
        return {key: said(value) for key, value in thing.items()}
    if hasattr(thing, "__slots__"):
        return {name: said(getattr(thing, name)) for name in thing.__slots__}
    return said(vars(thing)) if hasattr(thing, "__dict__") else thing


@pytest.mark.parametrize("counts", [counters(), head_counts()], ids=["process", "head"])
def test_copy_says_the_same_and_shares_nothing_that_changes(counts: Counters | HeadCounts) -> None:
    copied = counts.copy()
    assert said(copied) == said(deepcopy(counts))
    shared = {id(one) for one in held(counts)} & {id(one) for one in held(copied)}
    assert [one for one in held(copied) if id(one) in shared] == []
