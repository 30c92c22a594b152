"""A seal is believed of a controller, for the one request it was made for, and for a minute."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest

from quorate.controller.api import headers
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.keys import derived_key
from quorate.controller.identity.seals import VALID_MS, Seals

SECRET, OTHER = b"the secret of the quorum, 32 characters", b"the next secret of the quorum"
SENT = {
    headers.HOPS: "1",
    headers.CLIENT: "10.0.0.7",
    headers.PRINCIPAL: "User:ana",
    headers.IDENTITY: "token",
    headers.REQUEST_ID: "mine",
}
BODY = b'{"topics":[]}'


class Clock:
    """Milliseconds that a test moves."""

    now_ms = 1_700_000_000_000.0

    def __call__(self) -> float:
        return self.now_ms


def seals(node_id: int = 1, secret: bytes = SECRET, clock: Clock | None = None) -> Seals:
    return Seals(lambda: (secret,), node_id, frozenset({1, 2, 3}), clock or Clock())


def claims(sent: Mapping[str, str], method: str = "POST", target: str = "/v1/topics?a=b") -> RequestClaims:
    return RequestClaims(method, target, "127.0.0.1", {name.lower(): value for name, value in sent.items()})


def sealed(by: Seals, **changes: str) -> dict[str, str]:
    sent = SENT | changes
    return sent | {"Authorization": by.seal("POST", "/v1/topics?a=b", sent, BODY)}


def test_sealed_request_names_the_controller_and_the_body_that_it_was_made_for() -> None:
    assert seals(2).check(claims(sealed(seals(1)))) == (1, hashlib.sha256(BODY).digest())


@pytest.mark.parametrize("name", sorted(SENT))
@pytest.mark.parametrize("value", ["2", None])
def test_seal_does_not_hold_where_a_header_was_changed_or_left_out(name: str, value: str | None) -> None:
    sent = sealed(seals()) | {name: value or ""}
    if value is None:
        del sent[name]
    with pytest.raises(NoAccess, match="no controller's of this quorum"):
        seals().check(claims(sent))


@pytest.mark.parametrize(("method", "target"), [("GET", "/v1/topics?a=b"), ("POST", "/v1/topics?a=c")])
def test_seal_does_not_hold_for_another_request(method: str, target: str) -> None:
    with pytest.raises(NoAccess, match="no controller's"):
        seals().check(claims(sealed(seals()), method, target))


def test_seal_is_made_with_the_first_secret_and_believed_with_each() -> None:
    believed = [SECRET]
    ours = Seals(lambda: tuple(believed), 1, frozenset({1, 2, 3}), Clock())
    sent = sealed(seals(2))
    for believed[:], is_believed, is_made in (
        ([SECRET, OTHER], True, True),
        ([OTHER, SECRET], True, False),
        ([OTHER], False, False),
    ):
        assert _is_believed(ours, sent) is is_believed
        assert _is_believed(seals(2), sealed(ours)) is is_made


def _is_believed(by: Seals, sent: Mapping[str, str]) -> bool:
    try:
        by.check(claims(sent))
    except NoAccess:
        return False
    return True


@pytest.mark.parametrize("other", [seals(4), seals(secret=SECRET + b"!")], ids=["no voter", "another secret"])
def test_seal_of_who_is_no_voter_or_has_another_secret_is_refused(other: Seals) -> None:
    with pytest.raises(NoAccess, match="no controller's"):
        seals().check(claims(sealed(other)))


def test_number_of_another_controller_does_not_make_its_seal() -> None:
    sent = sealed(seals(1))
    sent["Authorization"] = sent["Authorization"].replace("Quorate-Seal 1.", "Quorate-Seal 2.")
    with pytest.raises(NoAccess, match="no controller's"):
        seals().check(claims(sent))


@pytest.mark.parametrize(("after_ms", "is_good"), [(VALID_MS, True), (VALID_MS + 1, False), (-VALID_MS - 1, False)])
def test_seal_holds_for_a_minute_of_either_clock(after_ms: int, is_good: bool) -> None:
    clock = Clock()
    sent = sealed(seals(clock=clock))
    clock.now_ms += after_ms
    if is_good:
        assert seals(clock=clock).check(claims(sent))[0] == 1
        return
    with pytest.raises(NoAccess, match="clocks of the controllers"):
        seals(clock=clock).check(claims(sent))


@pytest.mark.parametrize("text", ["Quorate-Seal ", "Quorate-Seal 1.2.3.4", "Quorate-Seal 1.2." + "0" * 64])
def test_seal_that_is_not_in_its_form_is_refused(text: str) -> None:
    with pytest.raises(NoAccess, match="form"):
        seals().check(claims(SENT | {"Authorization": text}))


def test_key_of_one_purpose_is_that_of_the_rfc() -> None:
    """HKDF with SHA-256 and no salt: the first block of the third test case of RFC 5869, which has no label."""
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert derived_key(b"\x0b" * 22, b"").hex() == expected
