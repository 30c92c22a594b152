"""`quorate login`: from then on commands are this user, at the controllers that were named and until the login ends."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from quorate.controller.identity.login_failures import FAILURES_MAX
from quorate.scripts.terminal import exit_codes
from tests.integration.access.login_stage import ROOT_TOKEN, login_servers
from tests.integration.commands import Ended, alone

PASSWORD = "pencil"


@pytest.fixture(autouse=True)
def _nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says who asks, and there is no local cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SHARED_SECRET_FILE", "USER", "PASSWORD_FILE", "CERT_FILE", "KEY_FILE", "CA_FILE", "CONTROLLERS"):
        monkeypatch.delenv(f"QUORATE_{name}", raising=False)
    private("ana", PASSWORD)


def private(name: str, text: str) -> Path:
    file = Path(name)
    file.touch(0o600)
    file.write_text(text)
    return file


async def log_in(*urls: str, user: str = "ana") -> Ended:
    return await alone("login", user, "--password-file", "ana", "--controllers", ",".join(urls))


async def created(name: str, *urls: str) -> Ended:
    made = ("topics", "create", name, "--partitions", "1", "--replication-factor", "1")
    return await alone(*made, "--controllers", ",".join(urls))


async def test_login_is_kept_for_the_controllers_that_were_named_until_the_logout(tmp_path: Path) -> None:
    file = tmp_path / "state" / "quorate" / "logins.json"
    async with login_servers(tmp_path) as s:
        assert (await created("before", s.urls[0])).code == exit_codes.REFUSED
        ended = await log_in(*s.urls[:2])
        assert (ended.code, "Logged in as User:ana until" in ended.out) == (exit_codes.DONE, True), ended
        assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
        token = json.loads(file.read_text())["logins"][0]["token"]
        assert token not in ended.out + ended.err
        assert PASSWORD not in ended.out + ended.err + file.read_text()
        assert (await created("one", s.urls[0])).code == exit_codes.DONE
        assert (await created("two", *s.urls[:2])).code == exit_codes.DONE
        assert (await created("three", s.urls[2])).code == exit_codes.REFUSED
        assert (await created("four", *s.urls)).code == exit_codes.REFUSED
        gone = await alone("logout", "--controllers", s.urls[1])
        assert (gone.code, "User:ana is logged out of" in gone.out) == (exit_codes.DONE, True)
        assert "whoever copied it may until 20" in gone.out
        assert token not in file.read_text()
        assert (await created("after", s.urls[0])).code == exit_codes.REFUSED
        told = await alone("login", "ana", "--password-file", "ana", "--controllers", s.urls[0], "--json")
        assert json.loads(told.out)["principal"] == "User:ana"
        await alone("logout", "--all")
        assert "Nobody was logged in" in (await alone("logout", "--all")).out


async def test_login_that_has_ended_is_said_and_nobody_is_asked_in_another_name(tmp_path: Path) -> None:
    file = tmp_path / "state" / "quorate" / "logins.json"
    async with login_servers(tmp_path) as s:
        await log_in(*s.urls)
        document = json.loads(file.read_text())
        document["logins"][0]["ends_at_ms"] = 0
        file.write_text(json.dumps(document))
        ended = await created("late", s.urls[0])
        assert (ended.code, ended.out) == (exit_codes.REFUSED, "")
        assert "the login of User:ana ended at 1970-01-01T00:00:00Z: quorate login ana" in ended.said
        assert (await log_in(*s.urls)).code == exit_codes.DONE
        assert (await created("late", s.urls[0])).code == exit_codes.DONE


@pytest.mark.parametrize("tokens", [0, 2 * FAILURES_MAX], ids=["first", "where-others-wait"])
async def test_login_that_a_change_of_the_password_ended_is_told_from_a_strangers_token(
    tmp_path: Path, tokens: int
) -> None:
    """``tokens``: so many wrong ones were shown before from this address."""
    async with login_servers(tmp_path) as s:
        await log_in(*s.urls)
        await s.set_user("ana", "another one")
        for number in range(tokens):
            await s.say(f"Bearer wrong {number}", 1, "/v1/topics")
        ended = await created("late", s.urls[0])
    assert ended.code == exit_codes.REFUSED
    assert "the login of User:ana is no longer valid: quorate login ana, or quorate logout" in ended.said


async def test_wrong_password_keeps_nothing_and_is_not_repeated(tmp_path: Path) -> None:
    private("ana", "guessed")
    async with login_servers(tmp_path) as s:
        refused = await log_in(*s.urls)
        url = s.urls[0]
    assert (refused.code, "ana cannot log in by SCRAM-SHA-256" in refused.said) == (exit_codes.REFUSED, True), refused
    assert "guessed" not in refused.said
    assert "nothing was kept: commands go on asking in the name that they asked in before" in refused.err
    assert (await log_in(url)).code == exit_codes.UNREACHABLE
    assert not (tmp_path / "state").exists()


async def test_what_is_named_for_a_command_goes_before_the_login_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = private("root.token", ROOT_TOKEN)
    async with login_servers(tmp_path) as s:
        await log_in(*s.urls)
        assert (await alone("acls", "list", "--controllers", s.urls[0])).code == exit_codes.REFUSED
        monkeypatch.setenv("QUORATE_SHARED_SECRET_FILE", str(root))
        assert (await alone("acls", "list", "--controllers", s.urls[0])).code == exit_codes.DONE


@pytest.mark.parametrize("variable", ["QUORATE_SHARED_SECRET_FILE", "QUORATE_USER", "QUORATE_CERT_FILE"])
async def test_login_beside_what_would_go_before_it_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "ana")
    refused = await log_in("127.0.0.1:1")
    assert (refused.code, f"{variable} says who asks" in refused.said) == (exit_codes.USAGE, True), refused


async def test_certificate_beside_a_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("USER", "ana"), ("PASSWORD_FILE", "ana"), ("CERT_FILE", "c.pem"), ("KEY_FILE", "c.key")):
        monkeypatch.setenv(f"QUORATE_{name}", value)
    refused = await created("a", "127.0.0.1:1")
    assert (refused.code, "QUORATE_CERT_FILE and QUORATE_USER both say who" in refused.said) == (exit_codes.USAGE, True)


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("http://10.0.0.1:1", exit_codes.REFUSED, "a secret is sent to no other machine without TLS"),
        ("unix:socket", exit_codes.USAGE, "the machine says who asks through a socket"),
    ],
)
async def test_nobody_logs_in_on_a_way_that_others_read_or_that_says_who_he_is(url: str, code: int, says: str) -> None:
    refused = await log_in(url)
    assert (refused.code, says in refused.said) == (code, True), refused
