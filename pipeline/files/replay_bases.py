"""The base from which the state at an offset is replayed: a checkpoint whose tail is there, or the first record."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.pipeline.files.inputs import InputCluster, InputError, InputFile


@dataclass(frozen=True, slots=True)
class ReplayBase:
    """The state that a replay begins with."""

    #: None = from offset 0, with nothing.
    checkpoint: InputFile | None
    #: Of the first record of the log that is to be replayed.
    first_offset: int


def replay_base(cluster: InputCluster, end_offset: int | None = None) -> ReplayBase:
    """The base from which the state before ``end_offset`` (exclusive; None = all of the log) is replayed.

    The newest checkpoint whose tail is there, else offset 0.

    Raises:
        InputError: the log begins too late, or lacks a checkpoint's tail.
    """
    first = cluster.first_offset
    usable = [file for file in cluster.checkpoints if end_offset is None or file.offset <= end_offset]
    newest = usable[-1] if usable else None
    if first is None:
        if newest is None:
            raise _missing(cluster, f"holds neither a segment nor a checkpoint at or before offset {end_offset}", 0)
        if newest.offset != end_offset:
            raise InputError(
                newest.name, f"is a checkpoint at offset {newest.offset} without its tail",
                f"add the segments from offset {newest.offset} on, or ask for offset {newest.offset}",
            )  # fmt: skip
        return ReplayBase(newest, newest.offset)
    for file in reversed(usable):
        if file.offset >= first or file.offset == end_offset:
            return ReplayBase(file, file.offset)
    if first == 0:
        return ReplayBase(None, 0)
    if newest is not None:
        raise InputError(
            cluster.segments[0].name,
            f"the log begins at offset {first}, but its newest checkpoint to begin with ends at {newest.offset}",
            f"add the segments from offset {newest.offset} on",
        )
    asked = "" if end_offset is None else f" for offset {end_offset}"
    raise InputError(
        cluster.segments[0].name, f"the log begins at offset {first}, and there is no checkpoint{asked} to begin with",
        f"add the segments from offset 0 on, or a checkpoint at or after offset {first}",
    )  # fmt: skip


def require_offset(cluster: InputCluster, first_offset: int) -> None:
    """See to it that the log may hold the records from ``first_offset`` on.

    Raises:
        InputError: it begins later, or there is none.
    """
    first = cluster.first_offset
    if first is None:
        raise _missing(cluster, "holds checkpoints but no segment", first_offset)
    if first > first_offset:
        raise InputError(
            cluster.segments[0].name, f"the log begins at offset {first}, after the offset {first_offset} asked for",
            f"add the older segments, or ask for records from offset {first} on",
        )  # fmt: skip


def _missing(cluster: InputCluster, problem: str, offset: int) -> InputError:
    files = cluster.checkpoints or cluster.segments
    return InputError(files[0].name, problem, f"add the segments from offset {offset} on")
