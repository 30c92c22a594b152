"""Client quotas: what can be set for whom, and which entities a filter means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from quorate.controller.access.client_quotas import (
    HOST_NAMES_MAX,
    decide_alter_client_quotas,
    describe_client_quotas,
    host_names,
)
from quorate.controller.protocol.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import ClientQuotaRecord, EntityData, Record
from tests.unit.controller.access_stage import AccessStage

RATE = "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"
Entity = Mapping[str, str | None]
Ops = Mapping[str, float | None]
ANA: Entity = {"user": "ana"}


def parts(entity: Entity) -> list[dict[str, str | None]]:
    return [{"entity_type": type_, "entity_name": name} for type_, name in entity.items()]


def ops(changes: Ops) -> list[dict[str, Any]]:
    return [{"key": k, "remove": True} if v is None else {"key": k, "value": v} for k, v in changes.items()]


def request(*entries: tuple[Entity, Ops], **fields: Any) -> AlterClientQuotasRequest:
    made = [{"entity": parts(entity), "ops": ops(changes)} for entity, changes in entries]
    return AlterClientQuotasRequest.model_validate({"entries": made, **fields})


async def alter(
    stage: AccessStage, *entries: tuple[Entity, Ops], **fields: Any
) -> tuple[list[tuple[ErrorCode, str | None]], list[Record]]:
    asked = request(*entries, **fields)
    reply, records = await stage.write(lambda image: decide_alter_client_quotas(image, asked, {"broker.example"}))
    assert [result.entity for result in reply.entries] == [entry.entity for entry in asked.entries]
    return [(result.error_code, result.error_message) for result in reply.entries], records


def described(stage: AccessStage, *components: tuple[str, str, str | None], strict: bool = False) -> dict[str, Ops]:
    made = [{"entity_type": t, "match_type": m, "match": n} for t, m, n in components]
    asked = DescribeClientQuotasRequest.model_validate({"components": made, "strict": strict})
    return {
        " ".join(f"{part.entity_type}={part.entity_name}" for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in describe_client_quotas(stage.image, asked).entries
    }


@pytest.fixture
def stage() -> AccessStage:
    return AccessStage()


# --- changes -------------------------------------------------------------------------------------------


async def test_quotas_are_set_changed_and_removed(stage: AccessStage) -> None:
    both: Entity = {"user": "ana", "client-id": None}
    outcomes, records = await alter(
        stage,
        (ANA, {RATE: 1000, "request_percentage": 12.5}),
        (both, {RATE: 7}),
        ({"ip": "10.0.0.1"}, {CONNECTIONS: 3}),
    )
    assert outcomes == [(ErrorCode.NONE, None)] * 3
    pair = (EntityData("client-id", None), EntityData("user", "ana"))
    assert records == [
        ClientQuotaRecord((EntityData("user", "ana"),), RATE, 1000.0),
        ClientQuotaRecord((EntityData("user", "ana"),), "request_percentage", 12.5),
        ClientQuotaRecord(pair, RATE, 7.0),
        ClientQuotaRecord((EntityData("ip", "10.0.0.1"),), CONNECTIONS, 3.0),
    ]
    _, records = await alter(stage, (ANA, {RATE: None, "request_percentage": 20}))
    assert records == [
        ClientQuotaRecord((EntityData("user", "ana"),), RATE, 0.0, remove=True),
        ClientQuotaRecord((EntityData("user", "ana"),), "request_percentage", 20.0),
    ]
    assert described(stage) == {
        "client-id=None user=ana": {RATE: 7.0},
        "ip=10.0.0.1": {CONNECTIONS: 3.0},
        "user=ana": {"request_percentage": 20.0},
    }
    stage.check_checkpoint()


async def test_entity_without_quotas_is_forgotten(stage: AccessStage) -> None:
    await alter(stage, (ANA, {RATE: 1}))
    await alter(stage, (ANA, {RATE: None}))
    assert described(stage) == {}
    assert len(stage.image.client_quotas.entities) == 0


async def test_what_is_so_already_is_not_written(stage: AccessStage) -> None:
    await alter(stage, (ANA, {RATE: 5}))
    outcomes, records = await alter(stage, (ANA, {RATE: 5, "consumer_byte_rate": None}), ({"ip": None}, {"nope": None}))
    assert outcomes == [(ErrorCode.NONE, None)] * 2
    assert records == []


async def test_order_of_types_does_not_matter(stage: AccessStage) -> None:
    await alter(stage, ({"user": "ana", "client-id": "c"}, {RATE: 5}))
    _, records = await alter(stage, ({"client-id": "c", "user": "ana"}, {RATE: 5}))
    assert records == []


async def test_entities_of_one_request_have_their_own_outcomes(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, (ANA, {RATE: 0}), ({"user": "bo"}, {RATE: 5}))
    assert outcomes == [
        (ErrorCode.INVALID_REQUEST, "Quota producer_byte_rate must be greater than 0, and 0 is not"),
        (ErrorCode.NONE, None),
    ]
    assert records == [ClientQuotaRecord((EntityData("user", "bo"),), RATE, 5.0)]


async def test_one_bad_quota_keeps_all_of_its_entity_out(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, (ANA, {RATE: 5, "nope": 1}))
    assert outcomes == [(ErrorCode.INVALID_REQUEST, "Invalid configuration key nope")]
    assert records == []


async def test_entity_named_twice_is_changed_by_the_first_only(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, (ANA, {RATE: 5}), (ANA, {RATE: 6}), (ANA, {}))
    again = (ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity user=ana")
    assert outcomes == [(ErrorCode.NONE, None), again, again]
    assert records == [ClientQuotaRecord((EntityData("user", "ana"),), RATE, 5.0)]


async def test_validate_only_answers_and_writes_nothing(stage: AccessStage) -> None:
    outcomes, records = await alter(stage, (ANA, {RATE: 5}), (ANA, {RATE: 5}), validate_only=True)
    assert [code for code, _ in outcomes] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert records == []


async def test_key_named_twice_is_refused(stage: AccessStage) -> None:
    entry = {"entity": parts(ANA), "ops": ops({RATE: 1}) + ops({RATE: None})}
    asked = AlterClientQuotasRequest.model_validate({"entries": [entry]})
    reply, records = await stage.write(lambda image: decide_alter_client_quotas(image, asked, ()))
    assert reply.entries[0].error_code is ErrorCode.INVALID_REQUEST
    assert "Duplicate quota key" in (reply.entries[0].error_message or "")
    assert records == []


@pytest.mark.parametrize(
    ("entity", "says"),
    [
        ([], "Invalid empty client quota entity"),
        ([("group", "g")], "Unhandled client quota entity type: group"),
        ([("", "g")], "Unhandled client quota entity type: "),
        ([("user", "")], "Empty user not supported"),
        ([("client-id", "")], "Empty client-id not supported"),
        ([("ip", "")], "Empty ip not supported"),
        ([("user", "a"), ("user", "b")], "duplicate entity entry user"),
        ([("user", None), ("user", None)], "duplicate entity entry user"),
        ([("ip", "10.0.0.1"), ("user", "a")], "IP entity should not be combined"),
        ([("client-id", None), ("ip", None)], "IP entity should not be combined"),
        ([("ip", "10.0.0.256")], "10.0.0.256 is not a valid IP or resolvable host."),
        ([("ip", "nobody.invalid")], "nobody.invalid is not a valid IP or resolvable host."),
    ],
)
async def test_entity_that_cannot_be_is_refused(
    stage: AccessStage, entity: list[tuple[str, str | None]], says: str
) -> None:
    named = [{"entity_type": type_, "entity_name": name} for type_, name in entity]
    asked = AlterClientQuotasRequest.model_validate({"entries": [{"entity": named, "ops": ops({RATE: 1})}]})
    reply, records = await stage.write(lambda image: decide_alter_client_quotas(image, asked, ()))
    assert reply.entries[0].error_code is ErrorCode.INVALID_REQUEST
    assert says in (reply.entries[0].error_message or "")
    assert records == []


@pytest.mark.parametrize("entity", [{"ip": "::1"}, {"ip": None}, {"ip": "broker.example"}, {"ip": "255.255.255.255"}])
async def test_address_host_and_default_have_connection_rates_only(stage: AccessStage, entity: Entity) -> None:
    assert (await alter(stage, (entity, {CONNECTIONS: 1})))[0] == [(ErrorCode.NONE, None)]
    outcomes, _ = await alter(stage, (entity, {RATE: 1}))
    assert outcomes == [(ErrorCode.INVALID_REQUEST, "Invalid configuration key producer_byte_rate")]


@pytest.mark.parametrize("entity", [{"user": "a"}, {"client-id": None}, {"user": None, "client-id": "c"}])
async def test_users_and_clients_have_no_connection_rate(stage: AccessStage, entity: Entity) -> None:
    allowed: Ops = {RATE: 1, "consumer_byte_rate": 1, "request_percentage": 1, "controller_mutation_rate": 1}
    assert (await alter(stage, (entity, allowed)))[0] == [(ErrorCode.NONE, None)]
    outcomes, _ = await alter(stage, (entity, {CONNECTIONS: 1}))
    assert outcomes == [(ErrorCode.INVALID_REQUEST, "Invalid configuration key connection_creation_rate")]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (RATE, 0, "must be greater than 0"),
        (RATE, -1, "producer_byte_rate must be greater than 0, and -1 is not"),
        ("request_percentage", -0.0, "must be greater than 0"),
        (RATE, 0.5, "producer_byte_rate is 0.5, and cannot be a fractional value."),
        (RATE, 7.99999, "cannot be a fractional value."),
        (RATE, 1e19, "value 1e+19 for producer_byte_rate is too large for a LONG."),
        (RATE, 2.0**63, None),
        (RATE, 5.0000001, None),
        (CONNECTIONS, 2.0**31, "is too large for an INT."),
        (CONNECTIONS, 2.0**31 - 1, None),
        (CONNECTIONS, 1.5, "cannot be a fractional value."),
        ("request_percentage", 0.0001, None),
        ("request_percentage", 1e300, None),
        ("controller_mutation_rate", 2.5, None),
    ],
)
async def test_value_must_be_one_that_the_quota_can_have(
    stage: AccessStage, key: str, value: float, says: str | None
) -> None:
    entity: Entity = {"ip": "10.0.0.1"} if key == CONNECTIONS else ANA
    ((code, message),), records = await alter(stage, (entity, {key: value}))
    if says is None:
        assert (code, len(records)) == (ErrorCode.NONE, 1)
    else:
        assert (code, records) == (ErrorCode.INVALID_REQUEST, [])
        assert says in (message or "")


async def test_request_with_too_many_records_is_refused_as_a_whole(stage: AccessStage) -> None:
    entries: list[tuple[Entity, Ops]] = [({"user": f"u{n}"}, {RATE: 1, "consumer_byte_rate": 1}) for n in range(5_001)]
    before = stage.image
    for fields in ({}, {"validate_only": True}):
        with pytest.raises(LimitExceeded) as refused:
            await alter(stage, *entries, **fields)
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert stage.image is before
    await alter(stage, *entries[:5_000])
    assert len(described(stage)) == 5_000


def test_only_names_that_are_no_addresses_are_looked_up() -> None:
    some = request(
        ({"ip": "10.0.0.1"}, {}), ({"ip": "host"}, {}), ({"ip": None}, {}), ({"user": "x"}, {}), ({"ip": ""}, {})
    )
    assert host_names(some) == {"host"}
    many = request(*[({"ip": f"host-{n}"}, {}) for n in range(HOST_NAMES_MAX + 1)])
    with pytest.raises(LimitExceeded, match="at most 10 may be host names"):
        host_names(many)


# --- description ---------------------------------------------------------------------------------------


@pytest.fixture
async def filled(stage: AccessStage) -> AccessStage:
    entities: list[Entity] = [
        {"user": "ana"}, {"user": None}, {"client-id": "c"}, {"user": "ana", "client-id": "c"},
        {"user": "bo", "client-id": None}, {"user": None, "client-id": None},
    ]  # fmt: skip
    await alter(stage, *[(entity, {RATE: 1}) for entity in entities], ({"ip": "10.0.0.1"}, {CONNECTIONS: 1}))
    return stage


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], True, []),
        ([("user", "EXACT", "ana")], False, ["client-id=c user=ana", "user=ana"]),
        ([("user", "EXACT", "ana")], True, ["user=ana"]),
        ([("user", "DEFAULT", None)], False, ["client-id=None user=None", "user=None"]),
        ([("user", "ANY", None)], True, ["user=None", "user=ana"]),
        ([("user", "ANY", None), ("client-id", "DEFAULT", None)], False,
         ["client-id=None user=None", "client-id=None user=bo"]),
        ([("client-id", "EXACT", "c")], True, ["client-id=c"]),
        ([("ip", "ANY", None)], False, ["ip=10.0.0.1"]),
        ([("ip", "DEFAULT", None)], False, []),
        ([("user", "EXACT", "")], False, []),
        ([("user", "EXACT", "nobody")], False, []),
    ],
)  # fmt: skip
async def test_filter_finds_what_meets_all_of_it(
    filled: AccessStage, components: list[tuple[str, str, str | None]], strict: bool, found: list[str]
) -> None:
    assert list(described(filled, *components, strict=strict)) == found


async def test_no_filter_finds_everything(filled: AccessStage) -> None:
    assert len(described(filled)) == 7


@pytest.mark.parametrize(
    ("components", "code", "says"),
    [
        ([("", "ANY", None)], "INVALID_REQUEST", "Invalid empty entity type."),
        ([("group", "ANY", None)], "UNSUPPORTED_VERSION", "Unsupported entity type group"),
        ([("user", "ANY", None), ("user", "DEFAULT", None)], "INVALID_REQUEST", "cannot appear more than once"),
        ([("user", "EXACT", None)], "INVALID_REQUEST", "gives no name"),
        ([("user", "DEFAULT", "x")], "INVALID_REQUEST", "also gives a name"),
        ([("user", "ANY", "x")], "INVALID_REQUEST", "also gives a name"),
        ([("ip", "ANY", None), ("user", "ANY", None)], "INVALID_REQUEST", "should not be used with user"),
    ],
)
async def test_filter_that_cannot_be_is_refused(
    stage: AccessStage, components: list[tuple[str, str, str | None]], code: str, says: str
) -> None:
    with pytest.raises(ApiError) as refused:
        described(stage, *components)
    assert refused.value.code.name == code
    assert says in refused.value.message
