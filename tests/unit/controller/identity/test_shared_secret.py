"""Without an authorizer whoever shows a secret that is believed just now may do everything."""

from __future__ import annotations

import pytest

from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.shared_secret import SharedSecretAuthentication

OLD, NEW = b"o" * 32, b"n" * 32


def is_let_in(authentication: SharedSecretAuthentication, shown: bytes) -> bool:
    fields = {"authorization": f"Bearer {shown.decode()}"}
    try:
        authentication.identify(RequestClaims("GET", "/v1/topics", "10.0.0.7", fields))
    except NoAccess:
        return False
    return True


def test_each_secret_that_is_believed_opens_and_what_was_known_of_a_head_ends_with_it() -> None:
    believed = [OLD]
    authentication = SharedSecretAuthentication(lambda: tuple(believed))
    seen = []
    for believed[:] in ([OLD], [OLD, NEW], [NEW, OLD], [NEW]):
        let_in = is_let_in(authentication, OLD), is_let_in(authentication, NEW)
        seen.append((authentication.generation, *let_in))
    assert seen == [(0, True, False), (1, True, True), (2, True, True), (3, False, True)]


@pytest.mark.parametrize("shown", [b"", b"o" * 31, OLD + b"o", NEW])
def test_anything_else_is_refused(shown: bytes) -> None:
    assert not is_let_in(SharedSecretAuthentication(lambda: (OLD,)), shown)
