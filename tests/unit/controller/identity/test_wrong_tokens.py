"""Wrong tokens of one address: those that were told to wait count no more than those that were not shown."""

from __future__ import annotations

from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.login_failures import FAILURES_MAX, FORGOTTEN_MS
from quorate.controller.identity.wrong_tokens import WrongTokens


def test_whoever_goes_on_is_refused_plainly_again_after_the_time_that_he_was_told() -> None:
    now_ms = 0.0
    tokens = WrongTokens(lambda: now_ms)

    def status(authorization: str = "Bearer x", address: str = "10.0.0.1") -> int:
        return tokens.told(NoAccess(401, "nobody has it"), authorization, address).status

    assert [status() for _ in range(FAILURES_MAX)] == [401] * FAILURES_MAX
    assert {status() for _ in range(1_000)} == {429}
    assert (status(address="10.0.0.2"), status("Quorate-Seal 1")) == (401, 401)
    now_ms += FORGOTTEN_MS
    assert [status(), status()] == [401, 429]
