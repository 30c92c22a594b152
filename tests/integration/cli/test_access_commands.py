"""`quorate quotas`, `quorate users` and `quorate acls` against controllers behind real HTTP servers."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from contextlib import suppress
from pathlib import Path

from quorate.scripts.terminal import exit_codes
from tests.integration.commands import answered, terminal
from tests.integration.http_stage import stage

SHA_256 = "SCRAM-SHA-256"


# --- quotas ----------------------------------------------------------------------------------------------


async def test_quotas_are_set_shown_and_removed() -> None:
    async with terminal({}) as t:
        assert (await t.run("quotas", "list")).out == "No quotas are set.\n"
        both = ("user/ana", "client-id/")
        ended = await t.run("quotas", "set", *both, "--quota", "producer_byte_rate=1048576", "--dry-run")
        assert ended.out == "The quotas of user/ana client-id/ can be changed.\n"
        assert answered((await t.run("quotas", "list", "--json")).out) == {"entries": []}
        ended = await t.run("quotas", "set", *both, "--quota", "producer_byte_rate=1048576")
        assert ended == (exit_codes.DONE, "The quotas of user/ana client-id/ were changed.\n", "")
        await t.run("quotas", "set", "user/ana", "--quota", "request_percentage=12.5")
        ended = await t.run("quotas", "list", "user/ana")
        assert ended.cells == [
            ["ENTITY", "QUOTA", "VALUE"],
            ["client-id/", "user/ana", "producer_byte_rate", "1048576"],
            ["user/ana", "request_percentage", "12.5"],
        ]
        assert len((await t.run("quotas", "list", "user", "--strict")).cells) == 2
        assert len((await t.run("quotas", "list", "client-id/")).cells) == 2
        ended = await t.run("quotas", "list", "ip", "--json")
        assert answered(ended.out) == {"entries": []}
        ended = await t.run("quotas", "remove", *both, "--quota", "producer_byte_rate", "--json")
        named = [{"entity_type": "user", "entity_name": "ana"}, {"entity_type": "client-id", "entity_name": None}]
        assert answered(ended.out) == {"entries": [{"error_code": 0, "error_message": None, "entity": named}]}
        assert len((await t.run("quotas", "list")).cells) == 2


# --- users -----------------------------------------------------------------------------------------------


async def test_credentials_are_set_shown_and_removed(tmp_path: Path) -> None:
    async with terminal({}) as t:
        assert (await t.run("users", "list")).out == "No user has a credential.\n"
        file = tmp_path / "password"
        file.write_text("a pässword\nnot this line\n", encoding="utf-8")
        file.chmod(0o600)
        ended = await t.run("users", "set", "ana", "--mechanism", SHA_256, "--password-file", str(file))
        assert ended == (exit_codes.DONE, "The SCRAM-SHA-256 credential of ana was set.\n", "")
        arguments = ("--mechanism", "scram-sha-512", "--iterations", "5000", "--password-file", str(file))
        ended = await t.run("users", "set", "bo", *arguments, "--json")
        assert answered(ended.out) == {"results": [{"error_code": 0, "error_message": None, "user": "bo"}]}
        ended = await t.run("users", "list")
        shown = [["USER", "MECHANISM", "ITERATIONS"], ["ana", SHA_256, "4096"], ["bo", "SCRAM-SHA-512", "5000"]]
        assert ended.cells == shown
        ended = await t.run("users", "list", "bo", "--json")
        (bo,) = json.loads(ended.out)["results"]
        assert bo == {
            "error_code": 0,
            "error_message": None,
            "user": "bo",
            "credential_infos": [{"mechanism": "SCRAM-SHA-512", "iterations": 5000}],
        }
        ended = await t.run("users", "remove", "bo", "--mechanism", "SCRAM-SHA-512", "--yes")
        assert ended == (exit_codes.DONE, "The SCRAM-SHA-512 credential of bo was removed.\n", "")
        assert (await t.run("users", "list")).cells == shown[:2]


async def test_password_comes_from_standard_input_where_that_is_no_terminal() -> None:
    async with stage() as s:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "quorate.scripts.cli", "users", "set", "ana", "--mechanism", SHA_256),
            *("--controllers", s.urls[0]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(b"hush hush\n")
        assert (process.returncode, err) == (exit_codes.DONE, b"")
        assert out == b"The SCRAM-SHA-256 credential of ana was set.\n"


async def test_password_that_is_typed_is_asked_for_twice_and_not_shown() -> None:
    async with stage() as s:
        for typed, code in ((b"hush\nhush\n", exit_codes.DONE), (b"hush\nhash\n", exit_codes.USAGE)):
            terminal, other_end = pty.openpty()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "quorate.scripts.cli", "users", "set", "ana", "--mechanism", SHA_256),
                *("--controllers", s.urls[0]),
                stdin=other_end,
                stdout=other_end,
                stderr=other_end,
                start_new_session=True,  # a terminal that is nobody's but this command's
            )
            os.close(other_end)
            shown = b""
            for question, line in zip((b"Password of ana: ", b"Once more: "), typed.splitlines(), strict=True):
                while question not in shown:
                    shown += await asyncio.to_thread(os.read, terminal, 1_000)
                os.write(terminal, line + b"\n")
            with suppress(OSError):  # EIO: the other end was closed
                while more := await asyncio.to_thread(os.read, terminal, 1_000):
                    shown += more
            assert await process.wait() == code
            os.close(terminal)
            assert b"hush" not in shown
            assert b"hash" not in shown


# --- ACLs ------------------------------------------------------------------------------------------------


async def test_acls_are_added_shown_and_removed() -> None:
    async with terminal({}) as t:
        assert (await t.run("acls", "list")).out == "There are none.\n"
        prefixed = ("topic/ord", "--prefixed", "--operation", "read", "--operation", "DESCRIBE_CONFIGS")
        ended = await t.run("acls", "add", *prefixed, "--principal", "User:ana", "--principal", "User:bo")
        assert (ended.code, ended.err) == (exit_codes.DONE, "")
        assert ended.out.splitlines()[0] == "Allowed: User:ana, read, from *."
        assert len(ended.cells) == 4
        denied = ("topic/orders", "--deny", "--operation", "all", "--principal", "User:*", "--host", "10.0.0.9")
        for _ in range(2):
            assert (await t.run("acls", "add", *denied)).out == "Denied: User:*, all, from 10.0.0.9.\n"
        await t.run("acls", "add", "cluster", "--operation", "alter", "--principal", "User:cy")
        ended = await t.run("acls", "list", "topic/orders")
        assert ended.cells == [
            ["RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"],
            ["topic/orders", "literal", "User:*", "10.0.0.9", "all", "deny"],
        ]
        matching = ("topic/orders", "--pattern", "match")
        assert [row[0] for row in (await t.run("acls", "list", *matching)).cells[1:]] == [
            *["topic/ord"] * 4,
            "topic/orders",
        ]
        ended = await t.run("acls", "list", "cluster", "--json")
        assert json.loads(ended.out)["resources"] == [
            {
                "resource_type": "CLUSTER",
                "resource_name": "kafka-cluster",
                "pattern_type": "LITERAL",
                "acls": [{"principal": "User:cy", "host": "*", "operation": "ALTER", "permission_type": "ALLOW"}],
            }
        ]
        mine = (*matching, "--principal", "User:ana", "--operation", "describe-configs")
        ended = await t.run("acls", "remove", *mine, "--dry-run")
        assert ended.out.splitlines()[-1] == "1 ACL can be removed."
        ended = await t.run("acls", "remove", *mine)
        assert ended.code == exit_codes.USAGE
        assert "to remove 1 ACL for good, say --yes" in ended.said
        ended = await t.run("acls", "remove", *mine, "--yes")
        assert ended.out.splitlines()[-1] == "1 ACL was removed."
        ended = await t.run("acls", "remove", "--permission", "allow", "--json", "--yes")
        (removed,) = json.loads(ended.out)["filter_results"]
        assert len(removed["matching_acls"]) == 4
        assert (await t.run("acls", "list")).cells[1:] == [
            ["topic/orders", "literal", "User:*", "10.0.0.9", "all", "deny"]
        ]


async def test_principal_whose_type_is_nobodys_is_pointed_out() -> None:
    async with terminal({}) as t:
        ended = await t.run("acls", "add", "topic/t", "--principal", "user:ana", "--operation", "read")
        assert (ended.code, ended.out) == (exit_codes.DONE, "Allowed: user:ana, read, from *.\n")
        assert ended.err == "quorate: nobody is of type user: did you mean User:ana?\n"


async def test_acls_of_which_some_are_refused_say_which() -> None:
    async with terminal({}) as t:
        both = ("--principal", "User:ana", "--principal", "bo", "--operation", "read")
        ended = await t.run("acls", "add", "topic/t", *both)
        assert (ended.code, ended.out) == (exit_codes.REFUSED, "Allowed: User:ana, read, from *.\n")
        assert ended.err.startswith("quorate: bo, read, from *: Could not parse principal from `bo`")


# --- refusals --------------------------------------------------------------------------------------------

RATE = "producer_byte_rate"
REFUSED = [
    (("quotas", "set", "user/a", "--quota", f"{RATE}=-1"), "must be greater than 0"),
    (("quotas", "set", "user/a", "ip/::1", "--quota", f"{RATE}=1"), "should not be combined"),
    (("users", "remove", "ana", "--mechanism", SHA_256, "--yes"), "does not exist"),
    (("users", "list", "nobody"), "does not exist: nobody"),
    (("acls", "add", "topic/t", "--principal", "a", "--operation", "read"), "no colon is present"),
]


async def test_refusal_ends_with_kafkas_sentence() -> None:
    async with terminal({}) as t:
        for arguments, says in REFUSED:
            ended = await t.run(*arguments)
            assert (ended.code, ended.out) == (exit_codes.REFUSED, ""), arguments
            assert ended.err.startswith("quorate: ")
            assert says in ended.err
