"""A client's side of an exchange: with a server, against RFC 7677, and what it does not believe."""

from __future__ import annotations

import pytest

from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.errors import ExchangeOver, ScramFailure
from quorate.controller.scram.keys import HASHES
from quorate.controller.scram.messages import MESSAGE_BYTES_MAX, server_final, server_first
from tests.unit.controller.scram.exchanges import (
    CHALLENGE,
    CLIENT_NONCE,
    FIRST,
    LAST,
    MECHANISM,
    SALT,
    VERDICT,
    credential,
    server,
)


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("user", ["ana", "CN=x,O=y", "a b=2C"])
def test_client_that_knows_the_password_logs_in_and_knows_the_server(mechanism: str, user: str) -> None:
    asked = server({user: credential("pässword", mechanism, iterations=5000)}, mechanism)
    client = ScramClient(mechanism, user, "pässword", "nonce")

    client.check(asked.answer(client.last(asked.answer(client.first()))))

    assert asked.login is not None
    assert (asked.login.name, asked.login.expires_ms) == (user, None)


def test_client_says_what_the_rfc_shows() -> None:
    client = begun()
    assert client.first() == FIRST
    assert client.last(CHALLENGE) == LAST
    client.check(VERDICT)


def test_messages_of_a_server_beyond_their_length_are_refused() -> None:
    for read in (server_first, server_final):
        with pytest.raises(ScramFailure, match=f"at most {MESSAGE_BYTES_MAX}"):
            read(b"v=" + b"x" * MESSAGE_BYTES_MAX)


def begun() -> ScramClient:
    return ScramClient(MECHANISM, "user", "pencil", CLIENT_NONCE)


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (CHALLENGE.replace(b"r=rOpr", b"r=rOps"), "does not begin with the client's"),
        (f"r={CLIENT_NONCE},s={SALT},i=4096".encode(), "adds nothing"),
        (CHALLENGE.replace(b"4096", b"4095"), "asks for 4095"),
        (CHALLENGE.replace(b"4096", b"1000001"), "asks for 1000001"),
        (CHALLENGE.replace(b"4096", b"99999999999"), "i= is due"),
        (b"", "a nonce, a salt and iterations"),
    ],
)
def test_client_refuses_a_challenge_that_no_server_would_give(challenge: bytes, reason: str) -> None:
    with pytest.raises(ScramFailure, match=reason):
        begun().last(challenge)


def test_client_refuses_a_server_that_does_not_know_the_password() -> None:
    client = begun()
    with pytest.raises(ExchangeOver):
        client.check(VERDICT)
    client.last(CHALLENGE)
    with pytest.raises(ScramFailure, match="does not know"):
        client.check(VERDICT.replace(b"6r", b"7r"))
    with pytest.raises(ExchangeOver):
        client.check(VERDICT)
    for verdict, reason in ((b"e=other-error", "refused: other-error"), (b"v=x", "base64"), (b"", "v= is due")):
        client.last(CHALLENGE)
        with pytest.raises(ScramFailure, match=reason):
            client.check(verdict)


@pytest.mark.parametrize("name", ["", "zoë", "a\0b"])
def test_client_refuses_names_that_cannot_log_in(name: str) -> None:
    with pytest.raises(ScramFailure, match="ASCII"):
        ScramClient(MECHANISM, name, "pencil", "nonce")
