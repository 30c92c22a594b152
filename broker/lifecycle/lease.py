"""A broker's lease: until when, by its own clock, no controller can have ended its session.

Rules of the file: no clock; times are monotonic milliseconds. A controller promises with its answer to a heartbeat how
long the session lasts *from when the heartbeat was sent*: what the way there and back took is on the safe side.
"""

from __future__ import annotations

import math
from typing import Final

#: What is counted on of a promise: it is timed by the controllers' clocks and kept by the broker's. Right for as long
#: as no clock runs a quarter faster than another; a processor's differ by less than a thousandth.
LEASE_SHARE: Final = 0.8


class SessionLease:
    """See the module."""

    def __init__(self) -> None:
        #: Valid before; -inf = it is not.
        self.valid_until_ms = -math.inf

    def is_valid(self, now_ms: float) -> bool:
        """Whether the session cannot have been ended by now."""
        return now_ms < self.valid_until_ms

    def extend(self, sent_ms: float, session_ms: float) -> None:
        """A heartbeat that was sent then was answered with this promise. An earlier one may reach further."""
        self.valid_until_ms = max(self.valid_until_ms, sent_ms + LEASE_SHARE * session_ms)

    def end(self) -> None:
        """The session is over, or another one begins."""
        self.valid_until_ms = -math.inf
