"""Effects of a log's rare records on all others: transactions, topics' lives, cleared ELRs, and their times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.timeline import NEVER, Located, Topics, Transactions
from quorate.pipeline.history.cells import RareRecord


class Timeline:
    """The rare records up to a moment, in order."""

    def __init__(self, records: Sequence[RareRecord], moment: int) -> None:
        """``moment``: the end of the history, exclusive.

        Raises:
            FoldRefused: transactions or topics that cannot be.
        """
        self.moment = moment
        located = [Located(rare.offset, rare.record) for rare in records if rare.offset < moment]
        self.transactions = Transactions.of(located)
        #: Those that count, markers left out.
        self.counted = self.transactions.counted(located, moment)
        self.topics = Topics(self.counted)
        self._times = {rare.offset: rare.time for rare in records}
        self._end_times = np.array([self._times.get(end, 0) for end in self.transactions.ends.tolist()], np.int64)

    def effective(self, offsets: Longs, times: Longs) -> tuple[Longs, Longs]:
        """From which record on, and when, what these records say holds: inside a transaction that is its End."""
        transactions = self.transactions
        if not len(transactions.begins):
            return offsets, times
        number = np.searchsorted(transactions.begins, offsets, side="right") - 1
        at = np.maximum(number, 0)
        is_inside = (number >= 0) & (offsets <= transactions.ends[at]) & ~transactions.is_aborted[at]
        return np.where(is_inside, transactions.ends[at], offsets), np.where(is_inside, self._end_times[at], times)

    @property
    def settled(self) -> int:
        """The offset below which nothing is in a transaction that is still open: the moment, or where that begins."""
        is_open = len(self.transactions.ends) and self.transactions.ends[-1] == NEVER
        return int(self.transactions.begins[-1]) if is_open else self.moment

    def time_of(self, offset: int) -> int:
        """Of a rare record, milliseconds since 1970."""
        return self._times[offset]

    def effective_one(self, offset: int) -> tuple[int, int]:
        """As ``effective``, of one rare record."""
        offsets, times = self.effective(np.array([offset]), np.array([self._times.get(offset, 0)]))
        return int(offsets[0]), int(times[0])

    def removal(self, topic_id: bytes) -> tuple[int, int] | None:
        """From which record on, and when, a topic is gone; None while it lives."""
        life = self.topics.lives.get(topic_id)
        return None if life is None or life.removed == NEVER else self.effective_one(life.removed)
