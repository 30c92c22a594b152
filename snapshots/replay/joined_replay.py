"""Replay of batches of which none of the states between is asked for: the same state and errors, in half the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.batches.joined_batches import join_batches
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.replay.replay_state import ReplayState

#: Bytes of batches that are waited for at most: more of them bring nothing, and take memory.
_BYTES_AT_ONCE: Final = 4 * 1024 * 1024


class JoinedReplay:
    """A state, and batches that are to be replayed onto it in their order, each the next one of a log."""

    def __init__(self, state: ReplayState) -> None:
        self._state = state
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0

    def add(self, batch: Buffer) -> None:
        """Take a batch, whose CRC the caller has checked; it need not be replayed yet.

        Raises:
            ReplayError, MalformedData: as ``ReplayState.replay_batch``, of this or of one that was added before.
        """
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= _BYTES_AT_ONCE:
            self.finish()

    def finish(self) -> ReplayState:
        """The state behind all batches so far. Whoever finds something wrong behind them asks for it first: it may be
        they that are wrong.

        Raises:
            ReplayError, MalformedData: as ``add``. None is waited for any more then.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._state = _replayed(self._state, waiting)
        return self._state


def _replayed(start: ReplayState, batches: Sequence[Buffer]) -> ReplayState:
    if len(batches) == 1:
        return start.replay_batch(batches[0])
    state = start
    try:
        for joined in join_batches(batches):
            if joined.items is None:
                state = state.replay_batch(batches[joined.first])
            else:
                first, last = parse_header(batches[joined.first]), parse_header(batches[joined.end - 1])
                state = state.replay_items(joined.items, first.base_offset, last.epoch, last.timestamp)
    except (ReplayError, MalformedData):
        # By itself each says what is wrong with it, and where.
        state = start
        for batch in batches:
            state = state.replay_batch(batch)
    return state
