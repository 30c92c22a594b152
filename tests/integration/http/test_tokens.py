"""Delegation tokens over HTTP, by command and in a real process: their HMAC is shown once, and its secret never."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from quorate.controller.access.delegation_tokens import token_hmac
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.terminal import exit_codes
from quorate.snapshots.image_digest import digest_image
from tests.integration.access.test_permissions import guarded
from tests.integration.http_stage import TOKEN_SECRET, Bad, stage

TOKENS: Final = "/v1/delegation-tokens"
RENEW: Final = f"{TOKENS}/renew"
EXPIRE: Final = f"{TOKENS}/expire"
ANA: Final = {"X-Quorate-Principal": "User:ana"}
EVE: Final = {"X-Quorate-Principal": "User:eve"}
READY_S: Final = 60.0


def user(name: Any, kind: Any = "User") -> dict[str, Any]:
    return {"principal_type": kind, "principal_name": name}


async def test_client_makes_renews_ends_and_describes_tokens() -> None:
    async with stage(2) as s:
        ana = ControllerClient([s.urls[1]], principal="User:ana")
        bob = ControllerClient([s.urls[0]], principal="User:bob")
        async with ana, bob:
            request = CreateDelegationTokenRequest.model_validate({"renewers": [user("bob")]})
            made = await ana.tokens.create(request)
            assert made.hmac == token_hmac(TOKEN_SECRET, made.token_id)
            renewal = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=1_000)
            renewed = await bob.tokens.renew(renewal)
            assert made.issue_timestamp_ms < renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
            (seen,) = (await bob.tokens.describe("User:ana")).tokens
            assert (seen.token_id, seen.expiry_timestamp) == (made.token_id, renewed.expiry_timestamp_ms)
            assert [renewer.principal_name for renewer in seen.renewers] == ["bob"]
            ended = await ana.tokens.expire(ExpireDelegationTokenRequest(hmac=made.hmac))
            assert made.issue_timestamp_ms <= ended.expiry_timestamp_ms < renewed.expiry_timestamp_ms
            with pytest.raises(ApiError) as gone:
                await bob.tokens.renew(renewal)
            assert gone.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
            assert (await ana.tokens.describe()).tokens == []


async def test_tokens_are_paged_and_show_no_hmac() -> None:
    async with stage(1) as s, ControllerClient(s.urls, principal="User:ana") as client:
        made = [await client.tokens.create(CreateDelegationTokenRequest()) for _ in range(5)]
        _, first, _ = await s.ask(1, "GET", f"{TOKENS}?limit=3&consistency=linearizable")
        _, second, _ = await s.ask(1, "GET", f"{TOKENS}?limit=3&after={first['next_after']}")
        ids = [token["token_id"] for page in (first, second) for token in page["tokens"]]
        assert ids == sorted(token.token_id for token in made)
        assert second["next_after"] is None
        assert "hmac" not in json.dumps([first, second])


MISTYPED: Final = "field that is refused"
CREATIONS: Final[list[tuple[str, Any, int, str, str]]] = [
    ("null for renewers", {"renewers": None}, 400, "INVALID_REQUEST", "valid array"),
    ("too many renewers", {"renewers": [user("a")] * 101}, 400, "INVALID_REQUEST", "at most 100"),
    ("renewer without a name", {"renewers": [user("")]}, 400, "INVALID_REQUEST", "at least 1"),
    ("renewer with a long name", {"renewers": [user("x" * 9_000)]}, 400, "INVALID_REQUEST", "at most 8000"),
    ("number for a name", {"renewers": [user(5)]}, 400, "INVALID_REQUEST", "valid string"),
    ("renewer that is no user", {"renewers": [user("a", "Group")]}, 400, "INVALID_PRINCIPAL_TYPE", "Group"),
    ("owner without a type", {"owner_principal_name": "bob"}, 400, "INVALID_PRINCIPAL_TYPE", "principal type"),
    ("owner of a long name", {"owner_principal_name": "x" * 9_000}, 400, "INVALID_REQUEST", "at most 8000"),
    ("text for a lifetime", {"max_lifetime_ms": "1"}, 400, "INVALID_REQUEST", "valid integer"),
    ("huge lifetime", {"max_lifetime_ms": 2**63}, 400, "INVALID_REQUEST", "less than or equal"),
    ("null for a lifetime", {"max_lifetime_ms": None}, 400, "INVALID_REQUEST", "valid integer"),
    ("unknown field", {"colour": "red"}, 400, "INVALID_REQUEST", "is not known"),
    ("list", [], 400, "INVALID_REQUEST", "object"),
]
UNKNOWN: Final = base64.b64encode(bytes(64)).decode()
CHANGES: Final[list[tuple[str, Any, int, str, str]]] = [
    ("no hmac", {}, 400, "INVALID_REQUEST", "must be given"),
    ("null for an hmac", {"hmac": None}, 400, "INVALID_REQUEST", "base64"),
    ("hmac that is no base64", {"hmac": MISTYPED}, 400, "INVALID_REQUEST", "base64"),
    ("long hmac", {"hmac": "A" * 40_000}, 400, "INVALID_REQUEST", "more than"),
    ("empty hmac", {"hmac": ""}, 404, "DELEGATION_TOKEN_NOT_FOUND", "not found"),
    ("unknown hmac", {"hmac": UNKNOWN}, 404, "DELEGATION_TOKEN_NOT_FOUND", "not found"),
]


async def test_bad_requests_are_refused_and_change_nothing() -> None:
    periods = {RENEW: "renew_period_ms", EXPIRE: "expiry_time_period_ms"}
    cases = [Bad(name, "POST", TOKENS, *rest) for name, *rest in CREATIONS]
    for path, field in periods.items():
        cases += [Bad(name, "POST", path, *rest) for name, *rest in CHANGES]
        wrong = {"hmac": UNKNOWN, field: 2**63}
        cases.append(Bad("huge period", "POST", path, wrong, 400, "INVALID_REQUEST", "less than or equal"))
    async with stage(2) as s:
        status, made, _ = await s.ask(1, "POST", TOKENS, {}, headers=ANA)
        assert status == 200
        end, before = s.quorum.log_end_offset, digest_image(s.members[1].controller.stable).text
        for bad in cases:
            for node_id in (1, 2):
                status, reply, _ = await s.ask(node_id, bad.method, bad.path, bad.body, headers=ANA)
                assert (status, reply["error"]) == (bad.status, bad.error), (bad.name, bad.path, reply)
                assert bad.says in reply["message"], (bad.name, bad.path, reply)
                assert MISTYPED not in json.dumps(reply), "a password that was mistyped is not repeated"
        for path in periods:
            for asked, error in (
                (EVE, "DELEGATION_TOKEN_OWNER_MISMATCH"),
                ({}, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
            ):
                status, reply, _ = await s.ask(2, "POST", path, {"hmac": made["hmac"]}, headers=asked)
                assert (status, reply["error"]) == (403, error)
        status, reply, _ = await s.ask(2, "POST", TOKENS, {})
        assert (status, reply["error"]) == (403, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
        for parameter in ("limit=0", "limit=1001", "after=" + "x" * 65, "hmac=x"):
            assert (await s.ask(1, "GET", f"{TOKENS}?{parameter}"))[0] == 400
        assert (s.quorum.log_end_offset, digest_image(s.members[1].controller.stable).text) == (end, before)
        assert s.members[1].faults.seen == []


async def test_without_a_secret_there_are_no_tokens() -> None:
    async with stage(1, token_secret=None) as s:
        some = {"hmac": base64.b64encode(bytes(64)).decode()}
        for method, path, body in (
            ("POST", TOKENS, {}),
            ("POST", RENEW, some),
            ("POST", EXPIRE, some),
            ("GET", TOKENS, None),
        ):
            status, reply, _ = await s.ask(1, method, path, body, headers=ANA)
            assert (status, reply["error"]) == (403, "DELEGATION_TOKEN_AUTH_DISABLED"), path


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


async def command(url: str, *arguments: str, given: str = "") -> Ended:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.scripts.cli", "tokens", *arguments, "--controllers", url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(given.encode())
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def test_commands_make_list_renew_and_end_a_token(tmp_path: Path) -> None:
    async with stage(2) as s:
        url = s.urls[1]
        assert (await command(url, "list")).out == "There are no tokens.\n"
        ended = await command(url, "create", "--principal", "User:ana", "--renewer", "User:bob", "--renewer", "User:c")
        assert (ended.code, ended.err) == (exit_codes.DONE, "")
        shown = {name: rest for name, *rest in (line.split() for line in ended.out.splitlines())}
        assert shown["owner"] == shown["requester"] == ["User:ana"]
        file = tmp_path / "token.hmac"
        file.write_text(shown["hmac"][0] + "\n")
        as_bob = ("--principal", "User:bob", "--hmac-file", str(file))
        ended = await command(url, "renew", *as_bob, "--period-ms", "60000")
        assert (ended.code, ended.out[:18]) == (exit_codes.DONE, "The token ends at ")
        ended = await command(url, "renew", *as_bob, "--json")
        assert set(json.loads(ended.out)) == {"schema_version", "as_of", "expiry_timestamp_ms"}
        ended = await command(url, "list", "--owner", "User:bob")
        assert [line.split()[:2] for line in ended.out.splitlines()] == [
            ["TOKEN", "OWNER"],
            [*shown["token"], "User:ana"],
        ]
        ended = await command(url, "list", "--json")
        assert json.loads(ended.out)["tokens"][0]["renewers"] == [user("bob"), user("c")]
        assert "hmac" not in ended.out
        ended = await command(url, "expire", "--principal", "User:ana", "--hmac-file", "-", given=shown["hmac"][0])
        assert ended == (exit_codes.DONE, "The token was removed.\n", "")
        made = json.loads((await command(url, "create", "--principal", "User:x", "--owner", "User:y", "--json")).out)
        assert (made["principal_name"], made["token_requester_principal_name"]) == ("y", "x")
        assert base64.b64decode(made["hmac"]) == token_hmac(TOKEN_SECRET, made["token_id"])


@pytest.mark.parametrize(
    ("arguments", "given", "code", "says"),
    [
        (("create",), "", exit_codes.REFUSED, "not allowed for who does not say who asks"),
        (("create", "--principal", "ana"), "", exit_codes.REFUSED, "a principal is Type:name"),
        (("create", "--owner", "ana"), "", exit_codes.USAGE, "is not TYPE:NAME"),
        (("create", "--owner", "User:" + "x" * 8_001), "", exit_codes.USAGE, "is too long"),
        (("create", "--renewer", "User:"), "", exit_codes.USAGE, "is not TYPE:NAME"),
        (("create", "--principal", "User:a", "--renewer", "Group:x"), "", exit_codes.REFUSED, "'Group' is no user"),
        (("create", "--max-lifetime-ms", "0"), "", exit_codes.USAGE, "greater than or equal to 1"),
        (("renew",), "", exit_codes.USAGE, "Missing option '--hmac-file'"),
        (("renew", "--hmac-file", "-"), "not base64!", exit_codes.USAGE, "the file holds no base64"),
        (("expire", "--hmac-file", "/nowhere"), "", exit_codes.USAGE, "No such file"),
        (("expire", "--principal", "User:a", "--hmac-file", "-"), "QUJD", exit_codes.REFUSED, "not found on server"),
    ],
)  # fmt: skip
async def test_bad_command_ends_with_a_sentence(arguments: tuple[str, ...], given: str, code: int, says: str) -> None:
    async with stage(1) as s:
        ended = await command(s.urls[0], *arguments, given=given)
        assert ended.code == code, ended
        assert says in " ".join(ended.err.replace("│", " ").split()), ended
        assert "Traceback" not in ended.err
        assert not given or given not in ended.err


def written_texts(directory: Path) -> bytes:
    """All that the processes have said and written."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "token.secret"]
    return b"".join(path.read_bytes() for path in files)


async def test_process_sweeps_tokens_and_neither_logs_nor_stores_a_secret(tmp_path: Path) -> None:
    secret = "a secret of thirty-two characters"
    key_file = tmp_path / "token.secret"
    plan = make_fresh(tmp_path, Ports.of(free_ports(2)), 1, 0)
    key_file.write_text(secret + "\n")
    key_file.chmod(0o600)
    settings = {"LOGGING__LEVEL": "debug", "TOKENS__SECRET_KEY_FILE": str(key_file), "TOKENS__SWEEP_INTERVAL_MS": "200"}
    cluster = LocalCluster(tmp_path, plan, LocalOptions(settings))
    client = ControllerClient(plan.controller_urls, principal="User:ana")
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        made = await client.tokens.create(CreateDelegationTokenRequest(max_lifetime_ms=500))
        assert made.hmac == token_hmac(secret.encode(), made.token_id)

        async def is_swept() -> bool | None:
            return not (await client.tokens.describe()).tokens or None

        await cluster.until(is_swept, "the token is removed", READY_S)
    finally:
        await client.close()
        await cluster.stop()
    told = written_texts(tmp_path)
    assert made.token_id.encode() in told, "the log has its id"
    for hidden in (secret.encode(), made.hmac, base64.b64encode(made.hmac), made.hmac.hex().encode()):
        assert hidden not in told


async def test_node_makes_no_token_and_a_user_makes_his_own(tmp_path: Path) -> None:
    """By one it would be a user of its name, with what ACLs give to everybody."""
    async with guarded(tmp_path) as g:
        status, reply = await g.ask("Broker:11", "POST", "/v1/delegation-tokens", {})
        assert (status, reply["error"]) == (403, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
        assert "Broker:11 is not a user" in reply["message"]
        assert (await g.ask("User:ana", "POST", "/v1/delegation-tokens", {}))[0] == 200
