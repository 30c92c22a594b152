"""Requests whose sender showed what is wrong, or nothing where something is wanted: how many, and whether too many."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

#: So many wrong proofs within a minute are somebody who tries, or a client that was forgotten when a secret changed.
BURST: Final = 100
BURST_MS: Final = 60_000.0
#: The kind of those who show nothing; they try nothing either.
NOTHING: Final = "nothing"
KINDS: Final = ("bearer", "certificate", "login", "seal", "other", NOTHING)


class FailedProofs:
    """Of one controller. Owned by the loop thread. Takes no more memory, however many there are."""

    def __init__(self) -> None:
        #: Kind -> number, from 0 on: who watches a counter rise sees its first event, too.
        self.counts = dict.fromkeys(KINDS, 0)
        #: When the last ones failed, in milliseconds of one monotonic clock, and where they came from.
        self._last: deque[tuple[float, str]] = deque(maxlen=BURST)

    def note(self, kind: str, address: str, now_ms: float) -> None:
        """One more. ``kind``: what was shown, of ``KINDS``."""
        self.counts[kind] += 1
        if kind != NOTHING:
            self._last.append((now_ms, address))

    def copy(self) -> FailedProofs:
        """As of now."""
        copied = FailedProofs()
        copied.counts = self.counts.copy()
        copied._last = self._last.copy()
        return copied

    def sentence(self, now_ms: float) -> str | None:
        """The fault that a burst is, for as long as it lasts; None: there is none."""
        if len(self._last) < BURST or now_ms - self._last[0][0] > BURST_MS:
            return None
        ((address, count),) = Counter(address for _, address in self._last).most_common(1)
        return (
            f"{BURST} requests within a minute showed a wrong token, secret, certificate or password,"
            f" {count} of them from {address}: quorate refusals says which"
        )
