"""Logins that failed, by address: who tries passwords one after the other is slowed down until it is of no use.

Who has logged in goes on, whatever others at his address do: a right token is let in (see ``wrong_tokens``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.controller.api.networks import network_of
from quorate.metadata_log.errors import Overloaded

#: Failures that an address may have at once, and the time in milliseconds after which one of them is forgotten.
FAILURES_MAX: Final = 20
FORGOTTEN_MS: Final = 3_000.0
#: Addresses that are remembered: those that failed last.
ADDRESSES_MAX: Final = 4_096


class LoginFailures:
    """Of one controller. Owned by the loop thread."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        """``now_ms``: milliseconds of a monotonic clock: one that is set back would shut out who failed for as long."""
        self._now_ms = now_ms
        #: Failures not forgotten yet, and when that was so, by network; the one that failed last at the end.
        self._counts: dict[str, tuple[float, float]] = {}

    def check(self, address: str) -> None:
        """Refuse one more login from an address where too many failed.

        Raises:
            Overloaded: wait.
        """
        if self.is_over(address):
            wait_s = FORGOTTEN_MS / 1000
            message = f"{FAILURES_MAX} logins from {address} failed one after the other: one more each {wait_s:g} s"
            raise Overloaded(message, "failed_logins")

    def is_over(self, address: str) -> bool:
        """Whether too many failed from there."""
        return self._count(network_of(address)) > FAILURES_MAX - 1

    def note(self, address: str) -> None:
        """A login from there failed."""
        network = network_of(address)
        count = self._count(network)
        self._counts.pop(network, None)
        while len(self._counts) >= ADDRESSES_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[network] = count + 1, self._now_ms()

    def _count(self, network: str) -> float:
        count, at_ms = self._counts.get(network, (0.0, 0.0))
        return max(0.0, count - max(0.0, self._now_ms() - at_ms) / FORGOTTEN_MS)
