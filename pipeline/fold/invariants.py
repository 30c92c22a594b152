"""The rules that every partition in a state must obey."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.metadata_log.ids import NO_LEADER, uuid_text
from quorate.pipeline.fold.elements import Elements, joined_elements
from quorate.pipeline.fold.fields import DIRECTORIES, Bools, Ints, Longs
from quorate.pipeline.fold.grouping import partition_codes


def broken(state: Elements) -> Iterator[tuple[str, Longs]]:
    """The rules that are broken, each with the rows that break it."""
    rules = {
        "the leader is not in the ISR": ~_is_member(state.lists["isr"], state.leader) & (state.leader != NO_LEADER),
        "the ISR has a broker that is no replica": ~_is_within(state.lists["isr"], state.lists["replicas"]),
        "there is not one directory for each replica": _lengths(state.lists[DIRECTORIES])
        != _lengths(state.lists["replicas"]),
        "it has no replica": _lengths(state.lists["replicas"]) == 0,
    }
    for rule, breaks in rules.items():
        if breaks.any():
            yield rule, np.flatnonzero(breaks)


def fallen_epochs(before: Elements, after: Elements) -> Longs:
    """The rows of a later state whose leader epoch or partition epoch is lower than in an earlier one."""
    both = joined_elements([before, after])
    codes = partition_codes(both.topic_ids, both.partition_ids)
    earlier = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    earlier[codes[: len(before)]] = np.arange(len(before))
    match = earlier[codes[len(before) :]]
    at = np.maximum(match, 0)
    if not len(before):
        return np.empty(0, np.int64)
    falls = (after.leader_epoch < before.leader_epoch[at]) | (after.partition_epoch < before.partition_epoch[at])
    return np.flatnonzero((match >= 0) & falls)


def partition_name(state: Elements, row: int, topic: str | None = None) -> str:
    """The name of a partition for people: by its topic's name where that is known, else by its id."""
    return f"{topic or uuid_text(state.topic_ids[row].tobytes())}-{int(state.partition_ids[row])}"


def _is_member(lists: pa.Array, values: Ints) -> Bools:
    flat, parents = _flat(lists)
    found = np.zeros(len(lists), np.bool_)
    found[parents[flat == values[parents]]] = True
    return found


def _is_within(inner: pa.Array, outer: pa.Array) -> Bools:
    values, parents = _flat(inner)
    allowed, of = _flat(outer)
    found = np.ones(len(inner), np.bool_)
    keys = parents << 32 | (values.astype(np.int64) & 0xFFFFFFFF)
    found[parents[~np.isin(keys, of << 32 | (allowed.astype(np.int64) & 0xFFFFFFFF))]] = False
    return found


def _flat(lists: pa.Array) -> tuple[Longs, Longs]:
    """All members, and the row of each."""
    return lists.flatten().to_numpy(), np.repeat(np.arange(len(lists)), _lengths(lists))


def _lengths(lists: pa.Array) -> Longs:
    found: Longs = pc.list_value_length(lists).to_numpy().astype(np.int64)
    return found
