"""The batches of a log in memory: which bytes are kept, and what they weigh."""

from __future__ import annotations

import sys

from hypothesis import example, given
from hypothesis import strategies as st

from quorate.metadata_log.log.log_entries import EntryTable

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 300)),
        st.tuples(st.just("evict"), st.integers(0, 2_000)),
        st.tuples(st.just("write"), st.integers(0, 40)),
        st.tuples(st.just("truncate"), st.integers(0, 40)),
        st.tuples(st.just("drop"), st.integers(0, 40)),
    ),
    max_size=80,
)


#: Five of which the first three go; then the log is cut among those, or behind them, and goes on.
GONE = [*[("add", 100)] * 5, ("write", 2), ("evict", 0)]


@example([("add", 1), ("evict", 0), ("write", 0), ("evict", 0)])
@example([*GONE, ("truncate", 1), ("add", 50), ("add", 60)])
@example([*GONE, ("truncate", 4), ("add", 50), ("add", 60)])
@example([*GONE, ("drop", 2), ("add", 50), ("drop", 2), ("add", 60)])
@given(STEPS)
def test_bytes_are_those_of_the_newest_entries_within_the_budget(steps: list[tuple[str, int]]) -> None:
    entries, kept, number = EntryTable(0), list[bytes](), 0
    written = 0
    for step, size in steps:
        if step == "add":
            kept.append(number.to_bytes(2) * size)
            number += 1
            entries.add_resident(entries.end_offset + 1, 1, 0, kept[-1])
        elif step == "evict":
            entries.evict(size, written)
            oldest = next((i for i in range(len(entries)) if entries.resident(i) is not None), len(entries))
            is_unwritten = oldest < len(entries) and entries.end_of(oldest) > written
            assert entries.resident_bytes <= size or is_unwritten
            # What is on no disk stays.
            assert all(entries.resident(i) is not None for i in range(len(entries)) if entries.end_of(i) > written)
        elif step == "write":
            written = max(written, entries.end_offset - size)
        elif step == "truncate":
            entries.truncate(size)
            del kept[size:]
        else:
            count = min(size, len(kept))
            entries.drop_first(count)
            del kept[:count]
        held = [entries.resident(index) for index in range(len(entries))]
        first = next((index for index, data in enumerate(held) if data is not None), len(held))
        assert held == [None] * first + kept[first:]
        assert entries.resident_bytes == sum(sys.getsizeof(data) + 8 for data in kept[first:])
        assert sum(map(len, entries._bytes)) == sum(map(len, kept[first:])), "nothing of what has gone is held"
        if first < len(held):
            assert entries.resident_run(first, len(held)) == b"".join(kept[first:])


def test_memory_of_small_batches_is_within_the_budget_too() -> None:
    entries = EntryTable(0)
    for number in range(5_000):
        entries.add_resident(number + 1, 1, 0, bytes(72))
        entries.evict(50_000, number + 1)
    held = [data for index in range(len(entries)) if (data := entries.resident(index)) is not None]
    assert 49_000 < sum(map(sys.getsizeof, held)) + 8 * len(held) <= 50_000
    # Places of what has gone are closed, too.
    assert sys.getsizeof(entries._bytes) < 8 * 4_000
