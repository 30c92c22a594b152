"""The Append messages of a leader's pass: followers that are level are sent the same one."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.quorum.library.core import RaftCore
from quorate.quorum.library.journal import LogJournal
from quorate.quorum.messages.messages import Append


class AppendMessages:
    """Makes them; between two calls of ``pass_ended`` round and commit point must stay the same."""

    def __init__(self, core: RaftCore, journal: LogJournal) -> None:
        self._core = core
        self._journal = journal
        #: The message made last in this pass, and the previous index and vouching it was made for.
        self._made: Append | None = None
        self._made_for = (0, False)
        self._acknowledged: tuple[tuple[int, int], ...] = ()

    def set_acknowledged(self, ends: Iterable[tuple[int, int]]) -> None:
        """Say in every message from now on how much each follower has acknowledged: pairs of its id and an end."""
        self._acknowledged = tuple(ends)

    def pass_ended(self) -> None:
        """Another pass has another round: nothing is sent again."""
        self._made = None

    def after(self, prev_index: int, batches: bytes, round_: int, commit_end: int, *, is_vouched: bool) -> Append:
        """The message with ``batches`` behind the entry ``prev_index``; the last one again where it is the same."""
        message = self._made
        if message is None or message.batches is not batches or self._made_for != (prev_index, is_vouched):
            journal = self._journal
            message = self._made = Append(
                self._core.epoch,
                round_,
                journal.end_of(prev_index),
                journal.epoch_of(prev_index),
                commit_end,
                batches,
                self._acknowledged,
                is_vouched,
            )
            self._made_for = (prev_index, is_vouched)
        return message
