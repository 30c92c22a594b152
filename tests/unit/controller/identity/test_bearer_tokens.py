"""The file of tokens: whose they are, and what is wrong with one that cannot be used."""

from __future__ import annotations

import hashlib

import pytest

from quorate.controller.identity.bearer_tokens import (
    TOKEN_CHARS_MAX,
    TOKENS_MAX,
    BearerTokens,
    InvalidTokens,
    token_line,
)
from quorate.controller.identity.identity import Identity, NodeIdentity


def line(token: str, principal: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()} {principal}"


def test_token_is_that_of_the_principal_in_its_line() -> None:
    ana, broker = "a" * 43, "b" * 43
    text = f"# people\n{token_line(ana, 'User:ana of sales')}\r\n\n  {token_line(broker, 'Broker:11,12')}\n"
    tokens = BearerTokens.parse(text)
    assert tokens.find(ana) == Identity("User:ana of sales", "token")
    assert tokens.find(broker) == Identity("Broker:11,12", "token", NodeIdentity("broker", frozenset({11, 12})))
    assert [tokens.find(other) for other in ("", "x", "c" * 43, f"{ana} ", "a" * (TOKEN_CHARS_MAX + 1))] == [None] * 5
    assert ana not in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sha256:abc User:ana", "line 1 is not sha256:HEX"),
        (f"\n{'0' * 64} User:ana", "line 2 is not"),
        (line("a", "ana"), "line 1: a principal is Type:name"),
        (line("a", "User:"), "line 1: a principal"),
        (line("a", "Controller:1"), "no token makes a controller"),
        (line("a", "Broker:eleven"), "ids of brokers"),
        (line("a", "Broker:-1"), "ids of brokers"),
        (line("a", f"Broker:{2**31}"), "ids of brokers"),
        (f"{line('a', 'User:ana')}\n{line('a', 'User:ben')}", "line 2 has the hash of a line before"),
    ],
)
def test_file_with_a_wrong_line_is_refused_whole_and_names_it(text: str, says: str) -> None:
    with pytest.raises(InvalidTokens, match=says):
        BearerTokens.parse(f"{text}\n")


def test_file_of_too_many_tokens_is_refused() -> None:
    text = "\n".join(f"sha256:{number:064x} User:u{number}" for number in range(TOKENS_MAX + 1))
    with pytest.raises(InvalidTokens, match="more than"):
        BearerTokens.parse(text)
    assert len(BearerTokens.parse(text.rpartition("\n")[0])) == TOKENS_MAX
