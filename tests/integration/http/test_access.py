"""Client quotas, SCRAM credentials and ACLs over HTTP: changes, descriptions, refusals that change nothing."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from quorate.controller.api.content import JSON
from quorate.controller.api.models import ErrorReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import body_to_send
from quorate.controller.protocol.acls import AclFilter, CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest, QuotaMatch
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import UserScramCredentialRecord
from quorate.snapshots.image_digest import digest_image
from tests.integration.http_stage import Bad, Stage, stage

QUOTAS = "/v1/client-quotas"
USERS = "/v1/users"
ACLS = "/v1/acls"
REMOVE = "/v1/acls/delete"


def quota(entity: Any, *ops: Any) -> dict[str, Any]:
    return {"entries": [{"entity": entity, "ops": list(ops)}]}


def part(type_: Any, name: Any) -> dict[str, Any]:
    return {"entity_type": type_, "entity_name": name}


def rate(value: Any = 5, **fields: Any) -> dict[str, Any]:
    return {"key": "producer_byte_rate", "value": value, **fields}


SECRET = base64.b64encode(b"a salted password, or what is taken for it").decode()
SALT = base64.b64encode(b"some salt").decode()


def credential(**fields: Any) -> dict[str, Any]:
    made = {"name": "ana", "mechanism": "SCRAM-SHA-256", "iterations": 4096, "salt": SALT, "salted_password": SECRET}
    return {"upsertions": [{**made, **fields}]}


def acl(**fields: Any) -> dict[str, Any]:
    made = {"resource_type": "TOPIC", "resource_name": "orders", "principal": "User:ana"}
    return {"creations": [{**made, "operation": "READ", "permission_type": "ALLOW", **fields}]}


async def test_client_changes_and_describes_quotas() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        both = [part("user", "ana"), part("client-id", None)]
        entries = [*quota(both, rate())["entries"], *quota([part("ip", "localhost")])["entries"]]
        reply = await client.access.alter_client_quotas(AlterClientQuotasRequest.model_validate({"entries": entries}))
        assert [entry.error_code for entry in reply.entries] == [ErrorCode.NONE] * 2
        wanted: dict[str, tuple[QuotaMatch, str | None]] = {"user": ("EXACT", "ana"), "client-id": ("DEFAULT", None)}
        for is_strict in (True, False):
            found = (await client.access.describe_client_quotas(wanted, is_strict=is_strict)).entries
            assert [value.model_dump() for entry in found for value in entry.values] == [rate(5.0)]
        del wanted["client-id"]
        assert (await client.access.describe_client_quotas(wanted, is_strict=True)).entries == []


async def test_client_changes_and_describes_credentials() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        asked = AlterUserScramCredentialsRequest.model_validate_json(json.dumps(credential()))
        reply = await client.access.alter_user_scram_credentials(asked)
        assert [result.user for result in reply.results] == ["ana"]
        described = await client.access.describe_user_scram_credentials("ana")
        assert described == await client.access.describe_user_scram_credentials()
        assert described.results[0].credential_infos[0].model_dump() == {
            "mechanism": "SCRAM-SHA-256",
            "iterations": 4096,
        }
        gone = {"deletions": [{"name": "ana", "mechanism": "SCRAM-SHA-256"}]}
        await client.access.alter_user_scram_credentials(AlterUserScramCredentialsRequest.model_validate(gone))
        assert (await client.access.describe_user_scram_credentials()).results == []


async def test_client_creates_finds_and_removes_acls() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        creations = [*acl()["creations"], *acl(resource_name="ord", resource_pattern_type="PREFIXED")["creations"]]
        for _ in range(2):
            reply = await client.access.create_acls(CreateAclsRequest.model_validate({"creations": creations}))
            assert [result.error_code for result in reply.results] == [ErrorCode.NONE] * 2
        end = s.quorum.log_end_offset
        applying = AclFilter(resource_type_filter="TOPIC", resource_name_filter="orders", pattern_type_filter="MATCH")
        found = (await client.access.describe_acls(applying)).resources
        assert [(resource.resource_name, len(resource.acls)) for resource in found] == [("ord", 1), ("orders", 1)]
        removal = DeleteAclsRequest(filters=[applying, AclFilter(principal_filter="User:ana")])
        removed = (await client.access.delete_acls(removal)).filter_results
        assert [len(result.matching_acls) for result in removed] == [2, 2]
        assert s.quorum.log_end_offset == end + 2
        assert (await client.access.describe_acls(AclFilter())).resources == []


async def test_several_things_of_which_some_fail_are_answered_one_by_one() -> None:
    async with stage() as s:
        entries = [*quota([part("user", "a")], rate())["entries"], *quota([part("user", "")], rate())["entries"]]
        status, reply, _ = await s.ask(2, "POST", QUOTAS, {"entries": entries})
        assert (status, [entry["error_code"] for entry in reply["entries"]]) == (207, [0, 42])
        body = {**credential(), "deletions": [{"name": "bo", "mechanism": "SCRAM-SHA-256"}]}
        status, reply, _ = await s.ask(2, "POST", USERS, body)
        assert (status, [(r["user"], r["error_code"]) for r in reply["results"]]) == (207, [("bo", 91), ("ana", 0)])
        creations = [*acl()["creations"], *acl(principal="ana")["creations"]]
        status, reply, _ = await s.ask(2, "POST", ACLS, {"creations": creations})
        assert (status, [result["error_code"] for result in reply["results"]]) == (207, [0, 42])
        status, reply, _ = await s.ask(2, "GET", f"{ACLS}?principal=User:ana")
        assert (status, len(reply["resources"])) == (200, 1)


async def test_state_after_all_kinds_of_changes_is_the_same_on_every_node() -> None:
    async with stage() as s:
        await s.ask(1, "POST", QUOTAS, quota([part("user", "ana")], rate()))
        await s.ask(1, "POST", USERS, credential())
        await s.ask(1, "POST", ACLS, acl())
        digests = {digest_image(member.controller.stable).text for member in s.members.values()}
        assert len(digests) == 1


@pytest.mark.parametrize("body", [credential(), credential(iterations=1), credential(salted_password=f"{SECRET}!")])
async def test_secrets_are_in_no_answer_and_no_log(body: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    async with stage() as s:
        answers = [
            await s.ask(2, "POST", USERS, body),
            await s.ask(1, "GET", USERS),
            await s.ask(1, "GET", "/v1/status"),
        ]
        kept = list(s.members[1].controller.stable.scram.credentials.values())
        shown = repr(answers) + "".join(capsys.readouterr())
        assert_hidden(shown, kept)


def assert_hidden(shown: str, kept: list[UserScramCredentialRecord]) -> None:
    secrets = {SECRET[:10], SALT[:10], "salted password", "some salt"}
    for one in kept:
        secrets |= {base64.b64encode(key).decode() for key in (one.stored_key, one.server_key)}
    assert [secret for secret in secrets if secret in shown] == []


FORM: Final = (400, "INVALID_REQUEST")
TO_QUOTAS: Final = ("POST", QUOTAS)
TO_USERS: Final = ("POST", USERS)
TO_ACLS: Final = ("POST", ACLS)
TO_REMOVE: Final = ("POST", REMOVE)
USER: Final = [part("user", "ana")]
CASES = [
    # --- quotas: form ---
    Bad("no entries", *TO_QUOTAS, {}, *FORM, "body entries: must be given"),
    Bad("null entries", *TO_QUOTAS, {"entries": None}, *FORM, "entries"),
    Bad("unknown field", *TO_QUOTAS, quota(USER, rate(colour=1)), *FORM, "ops.0.colour: is not known"),
    Bad("no entity", *TO_QUOTAS, {"entries": [{"ops": []}]}, *FORM, "entries.0.entity: must be given"),
    Bad("no name", *TO_QUOTAS, quota([{"entity_type": "user"}], rate()), *FORM, "entity_name: must be given"),
    Bad("number for a name", *TO_QUOTAS, quota([part("user", 5)], rate()), *FORM, "entity_name"),
    Bad("null for a type", *TO_QUOTAS, quota([part(None, "x")], rate()), *FORM, "entity_type"),
    Bad("long name", *TO_QUOTAS, quota([part("user", "x" * 8_192)], rate()), *FORM, "at most 8191 characters"),
    Bad("many types", *TO_QUOTAS, quota(USER * 11, rate()), *FORM, "at most 10 items"),
    Bad("many quotas", *TO_QUOTAS, quota(USER, *[rate()] * 101), *FORM, "at most 100 items"),
    Bad("many entities", *TO_QUOTAS, {"entries": quota(USER)["entries"] * 10_001}, *FORM, "at most 10000 items"),
    Bad("text for a value", *TO_QUOTAS, quota(USER, rate("5")), *FORM, "value: "),
    Bad("null value", *TO_QUOTAS, quota(USER, rate(None)), *FORM, "value: "),
    Bad("truth for a value", *TO_QUOTAS, quota(USER, rate(True)), *FORM, "value: "),
    Bad("endless value", *TO_QUOTAS, b'{"entries": [{"entity": [], "ops": [{"key": "k", "value": Infinity}]}]}',
        *FORM, "finite number"),
    Bad("huge value", *TO_QUOTAS, b'{"entries": [{"entity": [], "ops": [{"key": "k", "value": 1e999}]}]}',
        *FORM, "finite number"),
    Bad("text for remove", *TO_QUOTAS, quota(USER, rate(remove="yes")), *FORM, "remove: "),
    Bad("many host names", *TO_QUOTAS, {"entries": [quota([part("ip", f"h{n}.invalid")])["entries"][0]
        for n in range(11)]}, *FORM, "at most 10 may be host names"),
    # --- quotas: what it says ---
    Bad("empty entity", *TO_QUOTAS, quota([], rate()), *FORM, "Invalid empty client quota entity"),
    Bad("unknown type", *TO_QUOTAS, quota([part("group", "g")], rate()), *FORM, "Unhandled client quota entity type"),
    Bad("empty name", *TO_QUOTAS, quota([part("user", "")], rate()), *FORM, "Empty user not supported"),
    Bad("type twice", *TO_QUOTAS, quota(USER * 2, rate()), *FORM, "duplicate entity entry user"),
    Bad("ip and user", *TO_QUOTAS, quota([*USER, part("ip", None)], rate()), *FORM, "should not be combined"),
    Bad("host that is not known", *TO_QUOTAS, quota([part("ip", "h.invalid")], rate()), *FORM, "resolvable host"),
    Bad("host that cannot be", *TO_QUOTAS, quota([part("ip", "h" * 300)], rate()), *FORM, "resolvable host"),
    Bad("host with a null byte", *TO_QUOTAS, quota([part("ip", "h\0")], rate()), *FORM, "resolvable host"),
    Bad("unknown quota", *TO_QUOTAS, quota(USER, rate(key="nope")), *FORM, "Invalid configuration key nope"),
    Bad("no value", *TO_QUOTAS, quota(USER, {"key": "producer_byte_rate"}), *FORM, "must be greater than 0"),
    Bad("negative value", *TO_QUOTAS, quota(USER, rate(-1)), *FORM, "must be greater than 0"),
    Bad("fraction", *TO_QUOTAS, quota(USER, rate(1.5)), *FORM, "cannot be a fractional value"),
    Bad("value over a long", *TO_QUOTAS, quota(USER, rate(1e30)), *FORM, "too large for a LONG"),
    Bad("quota twice", *TO_QUOTAS, quota(USER, rate(), rate()), *FORM, "Duplicate quota key"),
    Bad("too many records", *TO_QUOTAS, {"entries": [
        {"entity": [part("user", f"u{n}")], "ops": [rate(), rate(key="consumer_byte_rate")]} for n in range(5_001)]},
        422, "POLICY_VIOLATION", "excessively large"),
    Bad("filter by a name and DEFAULT", "GET", f"{QUOTAS}?user=a&user_match=DEFAULT", None, *FORM, "also gives a name"),
    Bad("filter by EXACT without a name", "GET", f"{QUOTAS}?ip_match=EXACT", None, *FORM, "gives no name"),
    Bad("filter by ip and user", "GET", f"{QUOTAS}?ip_match=ANY&user=a", None, *FORM, "should not be used with"),
    Bad("unknown match", "GET", f"{QUOTAS}?user_match=LIKE", None, *FORM, "LIKE"),
    Bad("unknown parameter", "GET", f"{QUOTAS}?client-id=x", None, *FORM, "client-id: is not known"),
    # --- users: form; what was found is not repeated ---
    Bad("list for a request", *TO_USERS, [SECRET], *FORM, "object"),
    Bad("object for a list", *TO_USERS, {"upsertions": credential()["upsertions"][0]}, *FORM, "upsertions: "),
    Bad("unknown field", *TO_USERS, credential(password=SECRET), *FORM, "upsertions.0.password: is not known"),
    Bad("no mechanism", *TO_USERS, {"deletions": [{"name": "ana"}]}, *FORM, "mechanism: must be given"),
    Bad("number for a mechanism", *TO_USERS, credential(mechanism=1), *FORM, "mechanism: "),
    Bad("null for a name", *TO_USERS, credential(name=None), *FORM, "name: "),
    Bad("long name", *TO_USERS, credential(name="x" * 8_192), *FORM, "at most 8191 characters"),
    Bad("text for iterations", *TO_USERS, credential(iterations="4096"), *FORM, "iterations: "),
    Bad("huge iterations", *TO_USERS, credential(iterations=2**31), *FORM, "iterations: "),
    Bad("salt that is no base64", *TO_USERS, credential(salt="%%%%"), *FORM, "salt: must be base64"),
    Bad("salt beyond ASCII", *TO_USERS, credential(salt="ä"), *FORM, "salt: must be base64"),
    Bad("null for a salted password", *TO_USERS, credential(salted_password=None), *FORM,
        "salted_password: must be base64"),
    Bad("long salted password", *TO_USERS, credential(salted_password="A" * 1_372), *FORM, "more than 1024 bytes"),
    Bad("salted password a bit too long", *TO_USERS, credential(salted_password="A" * 1_368), *FORM,
        "more than 1024 bytes"),
    Bad("too many changes", *TO_USERS, {"deletions": [{"name": "a", "mechanism": "b"}] * 10_001}, *FORM,
        "at most 10000 items"),
    # --- users: what it says ---
    Bad("unknown mechanism", *TO_USERS, credential(mechanism="PLAIN"), 422, "UNSUPPORTED_SASL_MECHANISM", "Unknown"),
    Bad("nobody", *TO_USERS, credential(name=""), 422, "UNACCEPTABLE_CREDENTIAL", "must not be empty"),
    Bad("few iterations", *TO_USERS, credential(iterations=4095), 422, "UNACCEPTABLE_CREDENTIAL", "Too few"),
    Bad("negative iterations", *TO_USERS, credential(iterations=-1), 422, "UNACCEPTABLE_CREDENTIAL", "Too few"),
    Bad("many iterations", *TO_USERS, credential(iterations=16_385), 422, "UNACCEPTABLE_CREDENTIAL", "Too many"),
    Bad("empty salted password", *TO_USERS, credential(salted_password=""), 422, "UNACCEPTABLE_CREDENTIAL", "Empty"),
    Bad("deletion of what is not there", *TO_USERS, {"deletions": [{"name": "x", "mechanism": "SCRAM-SHA-256"}]},
        404, "RESOURCE_NOT_FOUND", "does not exist"),
    Bad("user twice", *TO_USERS, {"upsertions": credential()["upsertions"] * 2}, 409, "DUPLICATE_RESOURCE", "twice"),
    Bad("unknown user", "GET", f"{USERS}?user=nobody", None, 404, "RESOURCE_NOT_FOUND", "nobody"),
    # --- ACLs: form ---
    Bad("no ACLs", *TO_ACLS, {}, *FORM, "body creations: must be given"),
    Bad("unknown type", *TO_ACLS, acl(resource_type="LAKE"), *FORM, "resource_type: "),
    Bad("number for a type", *TO_ACLS, acl(resource_type=2), *FORM, "resource_type: "),
    Bad("null name", *TO_ACLS, acl(resource_name=None), *FORM, "resource_name: "),
    Bad("long principal", *TO_ACLS, acl(principal="User:" + "x" * 8_192), *FORM, "at most 8191 characters"),
    Bad("unknown operation", *TO_ACLS, acl(operation="DANCE"), *FORM, "operation: "),
    Bad("unknown permission", *TO_ACLS, acl(permission_type="MAYBE"), *FORM, "permission_type: "),
    Bad("too many ACLs", *TO_ACLS, {"creations": acl()["creations"] * 10_001}, *FORM, "at most 10000 items"),
    Bad("too many filters", *TO_REMOVE, {"filters": [{}] * 1_001}, *FORM, "at most 1000 items"),
    Bad("no filters", *TO_REMOVE, {}, *FORM, "body filters: must be given"),
    Bad("unknown filter", *TO_REMOVE, {"filters": [{"resource_type": "TOPIC"}]}, *FORM, "resource_type: is not known"),
    Bad("filter of an unknown pattern", *TO_REMOVE, {"filters": [{"pattern_type_filter": "GLOB"}]}, *FORM,
        "pattern_type_filter"),
    Bad("parameter that is none", "GET", f"{ACLS}?operation=DANCE", None, *FORM, "DANCE"),
    # --- ACLs: what it says ---
    Bad("no name", *TO_ACLS, acl(resource_name=""), *FORM, "Invalid empty resource name"),
    Bad("another cluster", *TO_ACLS, acl(resource_type="CLUSTER"), *FORM, "kafka-cluster"),
    Bad("any type", *TO_ACLS, acl(resource_type="ANY"), *FORM, "Invalid resourceType ANY"),
    Bad("any pattern", *TO_ACLS, acl(resource_pattern_type="MATCH"), *FORM, "Invalid patternType MATCH"),
    Bad("any operation", *TO_ACLS, acl(operation="ANY"), *FORM, "Invalid operation ANY"),
    Bad("any permission", *TO_ACLS, acl(permission_type="ANY"), *FORM, "Invalid permissionType ANY"),
    Bad("principal without a type", *TO_ACLS, acl(principal="ana"), *FORM, "Could not parse principal"),
]  # fmt: skip


async def ask(s: Stage, bad: Bad) -> tuple[int, Any]:
    if bad.body is None:
        status, reply, _ = await s.ask(1, bad.method, bad.path)
    else:
        data = bad.body if isinstance(bad.body, bytes) else json.dumps(bad.body).encode()
        headers = {"Content-Type": JSON}
        status, reply, _ = await s.ask(1, bad.method, bad.path, data=body_to_send(data), headers=headers)
    return status, reply


async def test_bad_input_is_refused_in_one_shape_and_changes_nothing() -> None:
    async with stage() as s:
        end, digest = s.quorum.log_end_offset, digest_image(s.members[1].controller.stable).text
        problems = []
        for bad in CASES:
            status, reply = await ask(s, bad)
            if status == 200:
                problems.append(f"{bad.name}: {reply}")
                continue
            error = ErrorReply.model_validate(reply)
            if (status, error.error) != (bad.status, bad.error) or bad.says not in error.message:
                problems.append(f"{bad.name}: {status} {error.error}: {error.message}")
            if bad.path == USERS and SECRET[:10] in str(reply):
                problems.append(f"{bad.name}: shows a secret")
        assert problems == []
        assert s.quorum.log_end_offset == end
        assert digest_image(s.members[1].controller.stable).text == digest
        assert s.members[1].faults.seen == []
