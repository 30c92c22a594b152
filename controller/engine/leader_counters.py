"""Counters of leader changes as a node sees them: time without a known leader, records fetched, records appended."""

from __future__ import annotations

from quorate.controller.engine.counters import Counters, Histogram


class LeaderWatch:
    """Owned by the loop thread. Times are monotonic seconds."""

    def __init__(self) -> None:
        #: From the moment at which this node knew of no leader until it knew of one.
        self.latency = Histogram()
        self._leaderless_since: float | None = None
        self._fetched = _Grown()
        self._appended = _Grown()

    def changed(self, leader_id: int | None, now: float, *, is_own: bool, log_end_offset: int) -> None:
        """Note that another node leads from now on, or that no leader is known any more."""
        self._fetched.switch(log_end_offset, is_on=leader_id is not None and not is_own)
        self._appended.switch(log_end_offset, is_on=is_own)
        if leader_id is None:
            self._leaderless_since = now if self._leaderless_since is None else self._leaderless_since
        elif self._leaderless_since is not None:
            self.latency.note(now - self._leaderless_since)
            self._leaderless_since = None

    def fetched_records(self, log_end_offset: int) -> int:
        """Records that this node has taken over from leaders. What it cut off first, it took over again."""
        return self._fetched.total(log_end_offset)

    def appended_records(self, log_end_offset: int) -> int:
        """Records that this node has appended as leader, once it was known to lead."""
        return self._appended.total(log_end_offset)

    def report(self, counters: Counters, log_end_offset: int) -> None:
        """Enter all of it."""
        counters.election_latency = self.latency
        counters.fetched_records = self.fetched_records(log_end_offset)
        counters.appended_records = self.appended_records(log_end_offset)


class _Grown:
    """By how much the log has grown in certain times."""

    def __init__(self) -> None:
        self._before = 0
        #: Where the log ended when such a time began; None outside of it.
        self._begin: int | None = None

    def switch(self, log_end_offset: int, *, is_on: bool) -> None:
        self._before = self.total(log_end_offset)
        self._begin = log_end_offset if is_on else None

    def total(self, log_end_offset: int) -> int:
        return self._before + (0 if self._begin is None else max(0, log_end_offset - self._begin))
