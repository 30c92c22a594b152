"""A server's side of an exchange: against RFC 7677, and whatever else may come."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from random import Random

import pytest

from quorate.controller.scram.credentials import (
    BadCredentialText,
    ServerCredential,
    credential_of,
    credential_text,
    users_of,
)
from quorate.controller.scram.errors import (
    BadProofLength,
    ExchangeOver,
    OtherAuthorizationId,
    ScramError,
    ScramFailure,
)
from quorate.controller.scram.messages import MESSAGE_BYTES_MAX, client_final, client_first
from quorate.metadata_log.records.records import UserScramCredentialRecord
from quorate.snapshots.image.image_parts import ScramImage
from quorate.snapshots.maps.persistent_map import PersistentMap
from tests.unit.controller.scram.exchanges import (
    CHALLENGE,
    FIRST,
    LAST,
    SALT,
    SERVER_NONCE,
    VERDICT,
    credential,
    server,
)

KEPT = credential_text(credential("pencil", salt=b64decode(SALT)))


def test_server_says_what_the_rfc_shows() -> None:
    asked = server({"user": credential_of(KEPT)})
    assert asked.answer(FIRST) == CHALLENGE
    assert asked.answer(LAST) == VERDICT
    assert asked.login is not None
    assert (asked.login.name, asked.login.expires_ms) == ("user", None)


def test_wrong_password_ends_the_exchange() -> None:
    asked = server({"user": credential("pencils", salt=b64decode(SALT))})
    assert asked.answer(FIRST) == CHALLENGE

    with pytest.raises(ScramFailure, match="not that of the user's password"):
        asked.answer(LAST)
    with pytest.raises(ExchangeOver):
        asked.answer(LAST)
    assert asked.login is None


def test_proof_of_another_length_may_be_tried_again_and_a_nonce_not() -> None:
    asked = server({"user": credential_of(KEPT)})
    asked.answer(FIRST)
    with pytest.raises(BadProofLength, match="3 bytes; SCRAM-SHA-256 has 32"):
        asked.answer(LAST[: LAST.index(b"p=") + 2] + b"AAAA")
    assert asked.answer(LAST) == VERDICT

    asked = server({"user": credential("pencil")})
    asked.answer(FIRST)
    with pytest.raises(ScramFailure, match="nonce"):
        asked.answer(LAST.replace(b"k0,", b"k1,"))
    with pytest.raises(ExchangeOver):
        asked.answer(LAST)


def test_message_after_success_takes_the_login_back() -> None:
    asked = server({"user": credential_of(KEPT)})
    asked.answer(FIRST)
    asked.answer(LAST)
    assert asked.login is not None
    with pytest.raises(ExchangeOver):
        asked.answer(LAST)
    assert asked.login is None


def test_strangers_other_names_and_weak_credentials_are_refused_at_once() -> None:
    users = {"ana": credential("p"), "old": credential("p", iterations=4095)}
    for message, kind in (
        (b"n,,n=nobody,r=x", ScramFailure),
        (b"n,,n=ana,r=x,tokenauth=true", ScramFailure),
        (b"n,,n=old,r=x", ScramFailure),
        (b"n,a=old,n=ana,r=x", OtherAuthorizationId),
    ):
        with pytest.raises(kind):
            server(users).answer(message)


def test_token_is_asked_for_its_own_password() -> None:
    assert server({}).answer(b"n,,n=token,r=x,tokenauth=TRUE") == f"r=x{SERVER_NONCE},s=c2FsdA==,i=4096".encode()


def test_users_are_looked_for_by_name_and_mechanism() -> None:
    record = UserScramCredentialRecord("ana", 2, b"salt", b"stored", b"server", 4096)
    image = ScramImage(PersistentMap({("ana", 2): record}))

    assert users_of(image, "SCRAM-SHA-512")("ana") == ServerCredential(b"salt", b"stored", b"server", 4096)
    assert users_of(image, "SCRAM-SHA-256")("ana") is None


# --- messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [client_first, client_final])
def test_messages_beyond_their_length_are_refused(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ScramFailure, match=f"at most {MESSAGE_BYTES_MAX}"):
        read(b"n,,n=a,r=" + b"x" * MESSAGE_BYTES_MAX)


@pytest.mark.parametrize("seed", range(3))
def test_any_message_gives_an_answer_or_a_refusal(seed: int) -> None:
    """Changed at random: none of them logs in who does not know the password."""
    chance = Random(seed)
    for _ in range(300):
        asked = server({"user": credential_of(KEPT)})
        for message in (FIRST, LAST.replace(b"dHzb", b"dHzc")):
            changed = bytearray(message)
            for _ in range(chance.randrange(3)):
                changed[chance.randrange(len(changed))] = chance.choice(b"nacrmp=,Az09\0\x80\xff")
            del changed[chance.randrange(1, 2 * len(changed)) :]
            try:
                asked.answer(bytes(changed))
            except ScramError:
                continue
        assert asked.login is None


def test_credential_text_is_read_as_it_is_written() -> None:
    assert credential_text(credential_of(KEPT)) == KEPT
    for broken in ("", KEPT + ",x=y", KEPT[1:], KEPT.replace("i", "I"), KEPT + "0" * 10_000, KEPT[:-4] + "1" * 11):
        with pytest.raises(BadCredentialText):
            credential_of(broken)
