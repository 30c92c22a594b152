"""Logins in two messages that no controller remembers: only a right proof, in time and once, gives a token."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace

import pytest

from quorate.controller.client.login import PasswordLogin
from quorate.controller.identity import login_credentials, logins
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.logins import EXCHANGE_MS, FIRST_BYTES_MAX
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.errors import ScramError, ScramFailure
from quorate.controller.scram.http_fields import HttpStep
from quorate.controller.scram.messages import server_first
from quorate.metadata_log.errors import Overloaded
from tests.unit.controller.identity.login_stage import LIFETIME_MS, SECRET, TOKEN_SECRET, LoginStage
from tests.unit.controller.scram.exchanges import MECHANISM

ANA = Identity("User:ana", "scram")
ANA_BY_TOKEN = Identity("User:ana", "delegation-token")


def test_login_at_two_controllers_gives_a_token_that_all_know_for_its_time() -> None:
    s = LoginStage()
    client = ScramClient(MECHANISM, "ana", "pencil", "client")
    answer = s.controllers[0].begin(HttpStep(MECHANISM, "", client.first()))
    found = s.controllers[1].finish(HttpStep(MECHANISM, answer.sid, client.last(answer.message)))
    client.check(found.step.message)
    assert (found.step.sid, found.lifetime_ms, found.identity) == (answer.sid, LIFETIME_MS, ANA)
    assert [one.tokens.find(found.token) for one in s.controllers] == [ANA, ANA]
    s.now_ms += LIFETIME_MS - 1
    assert s.controllers[0].tokens.find(found.token) == ANA
    s.now_ms += 1
    assert s.controllers[0].tokens.find(found.token) is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_only_the_mechanism_whose_credential_there_is_logs_in(mechanism: str) -> None:
    """Who has a credential of the strong one only is not let in by another."""
    s = LoginStage()
    s.set_user("ben", "pen", mechanism)
    assert s.log_in("ben", "pen", mechanism).identity == Identity("User:ben", "scram")
    (other,) = {"SCRAM-SHA-256", "SCRAM-SHA-512"} - {mechanism}
    with pytest.raises(ScramFailure, match="proof is not"):
        s.log_in("ben", "pen", other)


def test_mechanism_that_is_not_taken_does_not_begin() -> None:
    s = LoginStage()
    s.controllers[0] = s.controller(b"s" * 32, ("SCRAM-SHA-512",))
    with pytest.raises(ScramFailure, match=r"access\.login_mechanisms"):
        s.begin()


def test_user_that_is_not_there_is_answered_as_one_with_a_wrong_password() -> None:
    s = LoginStage()
    told = []
    for name, password in (("ana", "wrong"), ("nobody", "wrong")):
        salts = {server_first(s.begin(name, password)[0].message)[1:] for _ in range(2)}
        assert len(salts) == 1, "a salt that changes is nobody's"
        assert salts.pop()[1] == 4096
        with pytest.raises(ScramError) as refused:
            s.log_in(name, password)
        told.append((type(refused.value), str(refused.value)))
    assert told == [
        (ScramFailure, f"as {name!r}: the proof is not that of the user's password") for name in ("ana", "nobody")
    ]
    one, other = (server_first(s.begin(name)[0].message).salt for name in ("nobody", "nobody else"))
    assert (len(one), len(other), one == other) == (32, 32, False)
    stranger = s.controller(b"another secret of another quorum")
    answer = stranger.begin(HttpStep(MECHANISM, "", ScramClient(MECHANISM, "nobody", "x", "c").first()))
    assert server_first(answer.message).salt != one, "whoever knows the rule could tell who is not there"


def test_last_message_counts_once_and_makes_no_newer_token_elsewhere() -> None:
    s = LoginStage()
    last = s.begin()[1]
    token = s.controllers[1].finish(last).token
    with pytest.raises(ScramFailure, match="sent again"):
        s.controllers[1].finish(last)
    s.now_ms += EXCHANGE_MS
    assert s.controllers[0].finish(last).token == token
    s.now_ms += 1
    fresh = s.controller(b"the secret of the quorum, 32 characters")
    with pytest.raises(ScramFailure, match="30 s ago"):
        fresh.finish(last)


def test_state_of_another_exchange_quorum_or_user_ends_none() -> None:
    s = LoginStage()
    s.set_user("ben", "pencil")
    (answer, last), (other, _), (of_ben, _) = s.begin(), s.begin(), s.begin("ben")
    state, _, mac = answer.sid.partition(".")
    longer = urlsafe_b64encode(b"9" * 15 + b" nonce0 n,,n=ana,r=client").decode().rstrip("=")
    forged = [other.sid, of_ben.sid, f"{of_ben.sid.partition('.')[0]}.{mac}", f"{longer}.{mac}", f"{state}.{'0' * 64}"]
    for sid in [*forged, state, f"x{answer.sid}", "AAAA." + mac, "A." + mac, ""]:
        with pytest.raises(ScramFailure):
            s.controllers[0].finish(last._replace(sid=sid))
    with pytest.raises(ScramFailure, match="no controller of this quorum"):
        s.controller(b"another secret of another quorum").finish(last)
    with pytest.raises(ScramFailure):
        s.controllers[0].finish(last._replace(mechanism="SCRAM-SHA-512"))
    assert s.controllers[0].finish(last).identity == ANA


def test_exchange_and_token_live_as_long_as_their_secret_is_believed() -> None:
    s, believed = LoginStage(), [SECRET]
    changing = s.believing(lambda: tuple(believed))
    last, generation = s.begin()[1], changing.tokens.generation
    believed[:] = [b"another secret", SECRET]
    token = changing.finish(last).token  # made with the new one
    assert [one.tokens.find(token) for one in (changing, s.controllers[0])] == [ANA, None]
    old = s.log_in().token
    assert changing.tokens.find(old) == ANA
    between = changing.tokens.generation
    believed[:] = [b"another secret"]
    assert [changing.tokens.find(one) for one in (old, token)] == [None, ANA]
    assert generation < between < changing.tokens.generation
    with pytest.raises(ScramFailure, match="no controller of this quorum made"):
        changing.finish(s.begin()[1])


@pytest.mark.parametrize("change", ["another password", "removed"])
def test_change_of_the_credential_ends_the_exchange_and_all_tokens(change: str) -> None:
    s = LoginStage()
    token, last = s.log_in().token, s.begin()[1]
    generation = s.controllers[0].tokens.generation
    assert s.controllers[0].tokens.find(token) == ANA
    if change == "removed":
        s.remove_user("ana")
    else:
        s.set_user("ana", "pen")
    assert s.controllers[0].tokens.generation != generation
    assert s.controllers[0].tokens.find(token) is None
    with pytest.raises(ScramFailure):
        s.controllers[0].finish(last)


def test_generation_moves_when_a_token_that_was_found_ends_and_not_before() -> None:
    """Who was found is not looked for again in the same generation."""
    s = LoginStage()
    tokens, token = s.controllers[0].tokens, s.log_in().token
    before = tokens.generation
    assert tokens.find(token) == ANA
    s.now_ms += LIFETIME_MS - 1
    assert tokens.generation == before
    s.now_ms += 1
    assert tokens.generation == before + 1
    assert tokens.generation == before + 1


def test_token_with_any_other_letter_is_nobodys() -> None:
    s = LoginStage()
    s.set_user("anb", "pencil")
    token = s.log_in().token
    parts = token.split(".")
    forged = [
        token.replace("SHA-256", "SHA-512"),
        ".".join([*parts[:3], str(int(parts[3]) + 1), *parts[4:]]),
        ".".join([*parts[:4], urlsafe_b64encode(b"anb").decode(), parts[5]]),
        ".".join([*parts[:4], "A", parts[5]]),
        ".".join([*parts[:4], "_" * 5, parts[5]]),
        token[:-1],
        token + "0",
        "",
    ]
    assert [s.controllers[0].tokens.find(one) for one in forged] == [None] * len(forged)
    assert s.controller(b"another secret of another quorum").tokens.find(token) is None


def test_first_message_is_bounded_and_so_is_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    s = LoginStage()
    with pytest.raises(ScramFailure, match="at most 1024"):
        s.controllers[0].begin(HttpStep(MECHANISM, "", b"n,,n=ana,r=" + b"r" * FIRST_BYTES_MAX))
    monkeypatch.setattr(logins, "FINISHED_MAX", 1)
    s.log_in()
    with pytest.raises(Overloaded, match="within 30 s"):
        s.log_in()
    s.now_ms += EXCHANGE_MS + 1
    s.log_in()


def test_user_who_logs_in_without_end_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    s = LoginStage()
    s.set_user("ben", "pen")
    monkeypatch.setattr(logins, "FINISHED_OF_ONE_MAX", 2)
    for _ in range(2):
        s.log_in()
    for _ in range(2):
        with pytest.raises(Overloaded, match="User:ana has logged in 2 times within 30 s"):
            s.log_in()
    assert s.log_in("ben", "pen").identity == Identity("User:ben", "scram")
    with pytest.raises(Overloaded):
        s.log_in_as(s.set_token("User:ana", 60_000))
    s.now_ms += EXCHANGE_MS + 1
    for _ in range(2):
        assert s.log_in().identity == ANA


def test_user_who_cannot_be_a_principal_is_not_logged_in() -> None:
    s = LoginStage()
    s.set_user("ana ", "pencil")
    with pytest.raises(ScramFailure, match="cannot be a principal"):
        s.log_in("ana ")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_delegation_token_logs_its_owner_in_for_as_long_as_it_lives(mechanism: str) -> None:
    s = LoginStage()
    found = s.log_in_as(replace(s.set_token("Role:batch", 60_000), mechanism=mechanism))
    owner = Identity("Role:batch", "delegation-token")
    assert (found.identity, found.lifetime_ms) == (owner, 60_001)
    assert s.controllers[0].tokens.find(found.token) == owner
    s.now_ms += 60_001
    assert s.controllers[0].tokens.find(found.token) is None
    with pytest.raises(ScramFailure, match="proof is not"):
        s.log_in_as(s.set_token("Role:batch", -1))


def test_delegation_token_that_ends_before_its_time_ends_its_logins() -> None:
    s = LoginStage()
    tokens, found = s.controllers[0].tokens, s.log_in_as(s.set_token("User:ana", 3_600_000))
    assert (found.lifetime_ms, tokens.find(found.token)) == (LIFETIME_MS, found.identity)
    s.set_token("User:ana", 1_000)
    before = tokens.generation
    assert tokens.find(found.token) == found.identity
    s.now_ms += 1_001
    assert (tokens.find(found.token), tokens.generation) == (None, before + 1)
    s.set_token("User:ana", 3_600_000)
    assert tokens.find(found.token) == found.identity, "it was renewed"
    s.remove_token()
    assert (tokens.find(found.token), tokens.generation) == (None, before + 2)


def test_token_is_no_user_and_no_user_a_token() -> None:
    s = LoginStage()
    login = s.set_token("User:ana", 60_000)
    for wrong in (
        replace(login, is_delegation_token=False),
        replace(login, password="wrong"),
        replace(login, user="AAAAAAAAAAAAAAAAAAAAbg"),
        PasswordLogin("ana", "pencil", is_delegation_token=True),
    ):
        with pytest.raises(ScramFailure, match="proof is not"):
            s.log_in_as(wrong)
    token = s.log_in_as(login).token
    (found,) = s.controllers[0].credentials.find(MECHANISM, login.user, is_token=True)
    s.hold_user(login.user, MECHANISM, found.credential)
    assert s.controllers[0].tokens.find(token.replace("token", "user")) is None


def test_credentials_of_tokens_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_credentials, "_KEPT_MAX", 1)
    s = LoginStage()
    login = s.set_token("User:ana", 60_000)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256"):
        s.log_in_as(replace(login, mechanism=mechanism))
        assert [one for one, _ in s.controllers[0].credentials._kept] == [mechanism]


def test_delegation_token_logs_in_while_its_secret_is_exchanged_and_not_after() -> None:
    s = LoginStage()
    login = s.set_token("User:ana", 60_000)
    tokens, token = s.controllers[0].tokens, s.log_in_as(login).token
    before = tokens.generation
    s.token_secrets = (b"the new one", TOKEN_SECRET)
    assert tokens.generation == before + 1
    assert tokens.find(token) == tokens.find(s.log_in_as(login).token) == ANA_BY_TOKEN
    assert s.log_in().identity == ANA
    s.token_secrets = (b"the new one",)
    assert tokens.find(token) is None
    with pytest.raises(ScramFailure, match="proof is not"):
        s.log_in_as(login)
