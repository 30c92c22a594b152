"""A token bucket (Kafka's ``TokenBucket``): a rate that lets a burst through; a debt is paid before the next one."""

from __future__ import annotations


class TokenBucket:
    """Tokens of one client, full at first. Below 0 they are a debt; times are those of one monotonic clock."""

    __slots__ = ("_tokens", "_updated_ms")

    def __init__(self, burst: float, now_ms: float) -> None:
        """``burst``: the most that it holds."""
        self._tokens = burst
        self._updated_ms = now_ms

    def tokens(self, rate: float, burst: float, now_ms: float) -> float:
        """The tokens that are there now, at ``rate`` more in a second since the last look, whatever it was then."""
        self._tokens = min(burst, self._tokens + rate * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
        return self._tokens

    def spend(self, tokens: float) -> None:
        """Take so many, whatever is there, as of the last look."""
        self._tokens -= tokens
