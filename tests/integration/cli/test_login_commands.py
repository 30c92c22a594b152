"""Commands that log in: as the user that the environment names, with a password out of a private file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from quorate.controller.protocol.tokens import CreateDelegationTokenRequest
from quorate.scripts.logins.passwords import PASSWORD_BYTES_MAX
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.named_addresses import reason_not_to_ask
from tests.integration.access.login_stage import login_servers
from tests.integration.commands import Ended, alone

PASSWORD = "pencil"
HINT = "nobody is logged in: quorate login USER"
CREATED = {"name": "orders", "num_partitions": 1, "replication_factor": 1}


def private(file: Path, text: str, mode: int = 0o600) -> Path:
    file.unlink(missing_ok=True)
    file.touch(mode)
    file.write_text(text)
    return file


async def listed(url: str, monkeypatch: pytest.MonkeyPatch, named: Mapping[str, str]) -> Ended:
    """What `topics list` says in an environment that names these."""
    for variable in ("USER", "PASSWORD_FILE", "MECHANISM", "DELEGATION_TOKEN"):
        monkeypatch.setenv(f"QUORATE_{variable}", named.get(variable, ""))
    return await alone("topics", "list", "--controllers", url)


async def test_command_logs_in_as_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with login_servers(tmp_path) as s:
        url = s.urls[0]
        ana = {"USER": "ana", "PASSWORD_FILE": str(private(tmp_path / "ana", f"{PASSWORD}\r\nno part of it\n"))}
        ended = await listed(url, monkeypatch, ana)
        assert (ended.code, ended.out.split()[:1]) == (exit_codes.DONE, ["TOPIC"])
        ended = await listed(url, monkeypatch, ana | {"MECHANISM": "SCRAM-SHA-512"})
        assert ended.code == exit_codes.REFUSED
        assert "ana cannot log in by SCRAM-SHA-512" in ended.said
        private(tmp_path / "ana", "another one\n")
        ended = await listed(url, monkeypatch, ana)
        assert "ana cannot log in by SCRAM-SHA-256" in ended.said
        assert "another one" not in ended.said
        async with s.client("ana", PASSWORD) as client:
            made = await client.tokens.create(CreateDelegationTokenRequest())
        private(tmp_path / "ana", b64encode(made.hmac).decode())
        ended = await listed(url, monkeypatch, ana | {"USER": made.token_id, "DELEGATION_TOKEN": "1"})
        assert ended.code == exit_codes.DONE


@pytest.mark.parametrize(
    ("named", "mode", "says"),
    [
        ({"USER": ""}, 0o600, "belong together"),
        ({"PASSWORD_FILE": ""}, 0o600, "belong together"),
        ({"DELEGATION_TOKEN": "yes"}, 0o600, "it must be 1, or not set"),
        ({"MECHANISM": "PLAIN"}, 0o600, "is no mechanism of logins"),
        ({}, 0o644, "has mode 0644"),
        ({"PASSWORD_FILE": "none"}, 0o600, "cannot be read"),
    ],
)
async def test_login_in_no_right_form_is_refused_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str], mode: int, says: str
) -> None:
    file = private(tmp_path / "ana", PASSWORD, mode)
    ended = await listed("127.0.0.1:1", monkeypatch, {"USER": "ana", "PASSWORD_FILE": str(file)} | named)
    assert ended.code not in (exit_codes.DONE, exit_codes.UNREACHABLE)
    assert says in ended.said
    assert PASSWORD not in ended.said


@pytest.mark.parametrize(("text", "says"), [("x" * (PASSWORD_BYTES_MAX + 3), "more than"), ("", "empty password")])
async def test_file_without_a_password_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    file = private(tmp_path / "ana", text)
    ended = await listed("127.0.0.1:1", monkeypatch, {"USER": "ana", "PASSWORD_FILE": str(file)})
    assert says in ended.said


async def test_two_ways_to_say_who_asks_are_one_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = private(tmp_path / "secret", "s" * 40)
    monkeypatch.setenv("QUORATE_SHARED_SECRET_FILE", str(secret))
    file = private(tmp_path / "ana", PASSWORD)
    ended = await listed("127.0.0.1:1", monkeypatch, {"USER": "ana", "PASSWORD_FILE": str(file)})
    assert "both say who asks" in ended.said


def test_login_is_shown_to_named_addresses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason_not_to_ask("http://b:1", ["http://a:1"], None) is None
    monkeypatch.setenv("QUORATE_USER", "ana")
    assert reason_not_to_ask("http://a:1", ["http://a:1"], None) is None
    assert reason_not_to_ask("http://b:1", ["http://a:1"], None) is not None


async def test_who_is_not_logged_in_is_told_that_others_may_be_shown_more_and_how_to_log_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with login_servers(tmp_path) as s:
        status, reply, _ = await s.stage.ask(1, "POST", "/v1/topics", {"topics": [CREATED]})
        assert status == 200, reply
        for words in (("topics", "list"), ("topics", "describe"), ("partitions", "list")):
            ended = await alone(*words, "--controllers", s.urls[0])
            assert (ended.code, "orders" in ended.out) == (exit_codes.DONE, False), words
            assert ended.said == f"quorate: only topics that User:ANONYMOUS may describe are shown; {HINT}", words
        ended = await alone("topics", "describe", "orders", "--controllers", s.urls[0])
        assert ended.code == exit_codes.REFUSED
        assert ended.said == f"quorate: there is no topic orders that User:ANONYMOUS may describe; {HINT}"
        for asked in ("history", "status"):
            ended = await alone(asked, "--controllers", s.urls[0])
            assert ended.code != exit_codes.DONE
            assert HINT in ended.said + " ".join(ended.out.split()), asked
        # Who is shown something by name is not told each time; who is shown nothing is.
        ana = {"USER": "ana", "PASSWORD_FILE": str(private(tmp_path / "ana", PASSWORD))}
        ended = await listed(s.urls[0], monkeypatch, ana)
        assert ("orders" in ended.out, ended.err) == (True, "")
        await s.set_user("ben", PASSWORD)
        ended = await listed(s.urls[0], monkeypatch, ana | {"USER": "ben"})
        assert ended.said == "quorate: only topics that User:ben may describe are shown"


async def test_who_lacks_one_of_two_rights_is_told_of_both(tmp_path: Path) -> None:
    async with login_servers(tmp_path) as s:
        for missing in ("DESCRIBE", "CLUSTER_ACTION"):
            for words in (("history", "--controllers", s.urls[0]), ("image", "diff", s.urls[0], s.urls[1])):
                ended = await alone(*words)
                assert ended.code in (exit_codes.REFUSED, exit_codes.USAGE), ended  # 2 of a comparison that is none
                assert "it takes both DESCRIBE and CLUSTER_ACTION on the cluster to read its log" in ended.said
            acl = {"resource_type": "CLUSTER", "resource_name": "kafka-cluster", "principal": "User:ANONYMOUS"}
            wanted = {"creations": [{**acl, "operation": missing, "permission_type": "ALLOW"}]}
            status, reply, _ = await s.stage.ask(1, "POST", "/v1/acls", wanted)
            assert status == 200, reply
        assert (await alone("history", "--controllers", s.urls[0])).code == exit_codes.DONE
