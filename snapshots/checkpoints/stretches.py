"""A log in files, told backwards: in stretches from one checkpoint to the next, the newest first.

Whoever wants to know what happened last goes back as far as it takes, and does not replay everything for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from quorate.metadata_log.directory.reader import FileBatch, find_files
from quorate.snapshots.checkpoints.loading import batches_from_start, continuous_batches
from quorate.snapshots.checkpoints.whole_checkpoints import TellPassedOver, first_whole
from quorate.snapshots.replay.replay_state import ReplayState


class LogStretch(NamedTuple):
    """A state, and the batches behind it as far as the stretch that was given before it."""

    start: ReplayState
    batches: Iterable[bytes]


def stretches_of(
    path: Path, tell: TellPassedOver = lambda passed_over: None, below: int | None = None
) -> Iterator[LogStretch]:
    """The stretches of what files hold, the newest first; the last begins with the earliest state that they hold.

    Args:
        tell: is told of checkpoints that are damaged: the stretch goes back to the next older one.
        below: batches that begin there or later are left out, and states behind it.

    Raises:
        ImageNotAvailable: the log begins in the middle of history, and no whole checkpoint ends there.
        StorageError: nothing there, or damage, also while the batches are gone through.
    """
    files = find_files(path)
    segments = [file for file in files if not file.is_checkpoint]
    first = (segments[0].offset or 0) if segments else 0
    end = below
    checkpoints = [file for file in files if file.is_checkpoint and (file.offset or 0) >= max(first, 1)]
    for file in reversed(checkpoints if segments else ()):
        if end is not None and (file.offset or 0) >= end:
            continue
        whole = first_whole([file], tell)
        if whole is not None:
            state = ReplayState(whole.image)
            yield LogStretch(state, _data(continuous_batches(path, segments, state.end_offset), end))
            end = state.end_offset
    if not first:
        yield LogStretch(ReplayState(), _data(continuous_batches(path, segments, 0), end))
    elif end == below:
        start, batches = batches_from_start(path)
        yield LogStretch(start, _data(batches, end))


def _data(batches: Iterable[FileBatch], end: int | None) -> Iterator[bytes]:
    for batch in batches:
        if end is not None and batch.header.base_offset >= end:
            return
        yield batch.data
