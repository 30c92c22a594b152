"""Finds lost replicas: those whose log directory is not online on their broker (Kafka's `DirectoryId.isOnline`).

A directory that is not assigned yet, or not known, counts as online, and so does any on a broker that named none when
it registered, as brokers did before directories; one that is known to be lost, or that the broker does not name, is
not.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.controller.planning.cluster import NONE, Indexes, Mask
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid, uuid_from_text
from quorate.pipeline.errors import PipelineError

_NOT_IN_ANY: Final = (DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED)


class BadDirectories(PipelineError):
    """The directories of a partition or of a broker cannot be those of its replicas."""


def lost_replicas(partitions: pa.Table, brokers: pa.Table, ids: Indexes) -> Mask:
    """Return which places of these rows hold a replica in a directory that is not online.

    Args:
        partitions: with topic, partition, directories, one for each replica; a list that is empty or null says nothing.
            brokers: with broker_id, log_dirs. ids: the replicas of each partition, `NONE` behind the last.

    Raises:
        BadDirectories: not one directory for each replica, or one whose id is none.
    """
    lists = partitions["directories"].combine_chunks()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    widths = np.count_nonzero(ids != NONE, axis=1)
    wrong = np.flatnonzero((lengths != 0) & (lengths != widths))
    if len(wrong):
        first = int(wrong[0])
        name = f"{partitions['topic'][first].as_py()}-{partitions['partition'][first].as_py()}"
        raise BadDirectories(
            f"{len(wrong)} partitions have not one directory for each replica, the first of them {name}: "
            f"{lengths[first]} for {widths[first]} replicas"
        )
    named = pc.fill_null(pc.list_flatten(lists).cast(pa.string()), "null").dictionary_encode()
    codes = np.full(ids.shape, NONE, np.int64)
    # Row by row, as a mask is filled: so the lists lie one behind the other.
    codes[(ids != NONE) & (lengths != 0)[:, None]] = named.indices.to_numpy()
    known, is_online = _online(brokers, [_id(text) for text in named.dictionary.to_pylist()])
    broker = np.searchsorted(known, ids).clip(max=max(len(known) - 1, 0))
    found = np.zeros(ids.shape, np.bool_)
    # Nothing is known of the directories of a broker that is not registered.
    at = np.nonzero((codes != NONE) & np.isin(ids, known))
    found[at] = ~is_online[broker[at], codes[at]]
    return found


def _online(brokers: pa.Table, directories: list[Uuid]) -> tuple[Indexes, Mask]:
    """Return brokers by id, and for each of them which of the directories would be online on it."""
    rows: list[dict[str, Any]] = brokers.select(["broker_id", "log_dirs"]).to_pylist()
    rows.sort(key=lambda row: int(row["broker_id"]))
    is_online = np.zeros((len(rows), len(directories)), np.bool_)
    is_online[:, [one in _NOT_IN_ANY for one in directories]] = True
    place = {one: at for at, one in enumerate(directories)}
    for at, row in enumerate(rows):
        its = [_id(text) for text in row["log_dirs"] or ()] or [one for one in directories if one != DIRECTORY_LOST]
        is_online[at, [place[one] for one in its if one in place]] = True
    return np.array([row["broker_id"] for row in rows], np.int32), is_online


def _id(text: str) -> Uuid:
    try:
        return uuid_from_text(text)
    except InvalidId as error:
        raise BadDirectories(f"a directory's id cannot be read: {error}") from error
