"""SCRAM credentials: what is kept, what is refused, what is never told."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.access.scram_credentials import (
    decide_alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from quorate.controller.scram.keys import scram_keys
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import Record, RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tests.unit.controller.access_stage import AccessStage

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


# --- changes -------------------------------------------------------------------------------------------


def upsertion(name: str = "ana", mechanism: str = SHA_256, **fields: Any) -> dict[str, Any]:
    made = {"iterations": 4096, "salt": b"some salt", "salted_password": b"some salted password"}
    return {"name": name, "mechanism": mechanism, **made, **fields}


def deletion(name: str = "ana", mechanism: str = SHA_256) -> dict[str, Any]:
    return {"name": name, "mechanism": mechanism}


async def alter(
    stage: AccessStage, *upsertions: dict[str, Any], deletions: list[dict[str, Any]] | None = None
) -> tuple[dict[str, tuple[str, str | None]], list[Record]]:
    asked = AlterUserScramCredentialsRequest.model_validate(
        {"upsertions": list(upsertions), "deletions": deletions or []}
    )
    reply, records = await stage.write(lambda image: decide_alter_user_scram_credentials(image, asked))
    return {result.user: (result.error_code.name, result.error_message) for result in reply.results}, records


def described(stage: AccessStage, *users: str) -> dict[str, Any]:
    asked = DescribeUserScramCredentialsRequest(users=list(users) if users else None)
    return {
        result.user: {info.mechanism: info.iterations for info in result.credential_infos} or result.error_code.name
        for result in describe_user_scram_credentials(stage.image, asked).results
    }


DONE = ("NONE", None)
TWICE = ("DUPLICATE_RESOURCE", "A user credential cannot be altered twice in the same request")


@pytest.fixture
def stage() -> AccessStage:
    return AccessStage()


async def test_credential_is_kept_as_keys_and_told_as_mechanism_and_iterations(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, upsertion("ana"), upsertion("bo", SHA_512, iterations=16_384))
    assert outcomes == {"ana": DONE, "bo": DONE}
    keys = scram_keys(SHA_512, b"some salted password")
    assert records[1] == UserScramCredentialRecord("bo", 2, b"some salt", *keys, 16_384)
    assert (len(keys.stored_key), len(keys.server_key)) == (64, 64)
    assert b"some salted password" not in b"".join(stage.bench.quorum.batches)
    await alter(stage, upsertion("ana", SHA_512))
    assert described(stage) == {"ana": {SHA_256: 4096, SHA_512: 4096}, "bo": {SHA_512: 16_384}}
    assert described(stage, "bo", "nobody") == {"bo": {SHA_512: 16_384}, "nobody": "RESOURCE_NOT_FOUND"}
    assert described(stage, "bo", "ana", "bo") == {
        "bo": "DUPLICATE_RESOURCE",
        "ana": {SHA_256: 4096, SHA_512: 4096},
    }
    stage.check_checkpoint()


async def test_credential_is_replaced_and_removed(stage: AccessStage) -> None:
    await alter(stage, upsertion("ana"), upsertion("bo"))
    outcomes, records = await alter(stage, upsertion("ana", iterations=5000), deletions=[deletion("bo")])
    assert list(outcomes) == ["bo", "ana"]
    assert records[0] == RemoveUserScramCredentialRecord("bo", 1)
    assert described(stage) == {"ana": {SHA_256: 5000}}
    stage.check_checkpoint()


async def test_users_of_one_request_have_their_own_outcomes(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, upsertion("ana", iterations=1), upsertion("bo"), deletions=[deletion("cy")])
    assert outcomes == {
        "cy": ("RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"),
        "ana": ("UNACCEPTABLE_CREDENTIAL", "Too few iterations"),
        "bo": DONE,
    }
    assert [type(record) for record in records] == [UserScramCredentialRecord]


async def test_user_that_stands_twice_in_a_request_is_not_changed(stage: AccessStage) -> None:
    """Not even with two mechanisms; what was wrong with the first mention is what is said."""
    await alter(stage, upsertion("ana"), upsertion("bo"))
    outcomes, records = await alter(
        stage,
        *(upsertion("ana"), upsertion("cy"), upsertion("cy", SHA_512), upsertion("dee", "x"), upsertion("dee")),
        deletions=[deletion("ana"), deletion("bo"), deletion("bo", SHA_512)],
    )
    wrong = ("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")
    assert outcomes == {"ana": TWICE, "bo": TWICE, "cy": TWICE, "dee": wrong}
    assert records == []


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"name": ""}, "UNACCEPTABLE_CREDENTIAL", "Username must not be empty"),
        ({"mechanism": "SCRAM-SHA-1"}, "UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism"),
        ({"mechanism": ""}, "UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism"),
        ({"iterations": 4095}, "UNACCEPTABLE_CREDENTIAL", "Too few iterations"),
        ({"iterations": -1}, "UNACCEPTABLE_CREDENTIAL", "Too few iterations"),
        ({"iterations": 16_385}, "UNACCEPTABLE_CREDENTIAL", "Too many iterations"),
        ({"iterations": 2**31 - 1}, "UNACCEPTABLE_CREDENTIAL", "Too many iterations"),
        ({"salted_password": b""}, "UNACCEPTABLE_CREDENTIAL", "Empty salted password"),
    ],
)
async def test_credential_that_cannot_be_is_refused(
    stage: AccessStage, fields: dict[str, Any], code: str, says: str
) -> None:
    outcomes, records = await alter(stage, {**upsertion(), **fields})
    assert list(outcomes.values()) == [(code, says)]
    assert records == []


@pytest.mark.parametrize("level", [7, 10])
async def test_level_before_scram_refuses_every_change(stage: AccessStage, level: int) -> None:
    await alter(stage, upsertion("ana"))
    await stage.write_level(level)
    outcomes, records = await alter(stage, upsertion("bo"), upsertion("", "x"), deletions=[deletion("ana")])
    assert {code for code, _ in outcomes.values()} == {"UNSUPPORTED_VERSION"}
    assert records == []
    assert described(stage) == {"ana": {SHA_256: 4096}}
    await stage.write_level(11)
    assert (await alter(stage, upsertion("bo")))[0] == {"bo": DONE}


async def test_request_with_too_many_changes_is_refused_as_a_whole(stage: AccessStage) -> None:
    many = [upsertion(f"u{n}") for n in range(9_999)]
    with pytest.raises(LimitExceeded) as refused:
        await alter(stage, *many, deletions=[deletion("x"), deletion("y")])
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert described(stage) == {}


def test_message_does_not_show_its_secrets() -> None:
    asked = AlterUserScramCredentialsRequest.model_validate({"upsertions": [upsertion()]})
    assert "some" not in repr(asked)
    assert asked.upsertions[0].salt == b"some salt"
    again = AlterUserScramCredentialsRequest.model_validate_json(asked.model_dump_json())
    assert again == asked
