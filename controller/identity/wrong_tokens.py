"""Wrong tokens again and again from one address: who shows them is told to wait, and a right one is let in.

Nobody guesses a token; but what sends wrong ones without a pause is broken, or tries what it has found somewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from quorate.controller.api.errors import THROTTLE_TIME_MS
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.login_failures import FAILURES_MAX, FORGOTTEN_MS, LoginFailures


class WrongTokens:
    """Of one process. Owned by the loop thread."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        """``now_ms``: milliseconds of a monotonic clock."""
        self._failures = LoginFailures(now_ms)

    def told(self, refusal: NoAccess, authorization: str, address: str) -> NoAccess:
        """Note a request that was refused, where it showed a wrong token. The answer to it: 429 after many of them."""
        is_token = authorization.partition(" ")[0].lower() == "bearer"
        if not is_token or refusal.status != HTTPStatus.UNAUTHORIZED:
            return refusal
        if not self._failures.is_over(address):
            self._failures.note(address)
            return refusal
        message = f"{refusal.message}; {FAILURES_MAX} wrong ones came from {address}: one more each "
        details = {THROTTLE_TIME_MS: int(FORGOTTEN_MS)}
        return NoAccess(429, f"{message}{FORGOTTEN_MS / 1000:g} s", refusal.noted, details)
