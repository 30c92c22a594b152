"""What a node sees of leaders coming and going: how long it knew of none, and what it took over from others."""

from __future__ import annotations

from controller.http.counters import Histogram


class LeaderWatch:
    """Owned by the loop thread. Times are monotonic seconds."""

    def __init__(self) -> None:
        #: From the moment at which this node knew of no leader until it knew of one.
        self.latency = Histogram()
        self._leaderless_since: float | None = None
        self._fetched_before = 0
        #: Where the log ended when this node began to follow; None while it does not.
        self._follows_from: int | None = None

    def changed(self, leader_id: int | None, now: float, *, is_own: bool, log_end_offset: int) -> None:
        """Who leads is known from now on, or not known any more."""
        self._fetched_before = self.fetched_records(log_end_offset)
        self._follows_from = None if leader_id is None or is_own else log_end_offset
        if leader_id is None:
            self._leaderless_since = now if self._leaderless_since is None else self._leaderless_since
        elif self._leaderless_since is not None:
            self.latency.note(now - self._leaderless_since)
            self._leaderless_since = None

    def fetched_records(self, log_end_offset: int) -> int:
        """Records that this node has taken over from leaders. What it cut off first, it took over again."""
        new = 0 if self._follows_from is None else max(0, log_end_offset - self._follows_from)
        return self._fetched_before + new
