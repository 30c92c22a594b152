"""Client quotas, credentials and ACLs: what is described is what was set, whatever was asked for in between."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.access.acls import decide_create_acls, decide_delete_acls, describe_acls
from quorate.controller.access.client_quotas import decide_alter_client_quotas, describe_client_quotas
from quorate.controller.access.scram_credentials import (
    decide_alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from quorate.controller.protocol.acls import AclFilter, CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from tests.record_stream import EXAMPLES
from tests.unit.controller.small_cluster import SmallCluster


def check_checkpoint(image: MetadataImage) -> None:
    """The state survives being written and read."""
    provenance = image.provenance
    loaded = read_checkpoint(checkpoint_batches(image, 1), provenance.end_offset, provenance.epoch)
    assert loaded == image
    assert digest_image(loaded).text == digest_image(image).text


# --- client quotas -----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["ana", "bo", "é", None])
KEYS = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]
ENTITIES = (
    st.fixed_dictionaries({"user": NAMES})
    | st.fixed_dictionaries({"client-id": NAMES})
    | st.fixed_dictionaries({"client-id": NAMES, "user": NAMES})
)
#: None = remove. Some cannot be: the entity is then left as it was.
VALUES = st.none() | st.integers(-1, 5).map(float) | st.floats(0.25, 1e6).map(lambda value: round(value, 3))
QUOTA_CHANGES = st.lists(st.tuples(ENTITIES, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3)), max_size=4)


@settings(max_examples=EXAMPLES)
@given(st.lists(QUOTA_CHANGES, max_size=5))
def test_quotas_are_described_as_they_were_set(requests: list[list[tuple[dict[str, str | None], Any]]]) -> None:
    cluster = SmallCluster(brokers=0)
    model: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
    for changes in requests:
        entries = [
            {
                "entity": [{"entity_type": type_, "entity_name": name} for type_, name in entity.items()],
                "ops": [
                    {"key": k, "remove": True} if value is None else {"key": k, "value": value}
                    for k, value in ops.items()
                ],
            }
            for entity, ops in changes
        ]
        request = AlterClientQuotasRequest.model_validate({"entries": entries})
        decision = decide_alter_client_quotas(cluster.image, request, ())
        cluster.commit(decision)
        for (entity, ops), result in zip(changes, decision.reply.entries, strict=True):
            if result.error_code is ErrorCode.NONE:
                values = model.setdefault(tuple(sorted(entity.items())), {})
                values |= {key: value for key, value in ops.items() if value is not None}
                for key, value in ops.items():
                    if value is None:
                        values.pop(key, None)
        described = describe_client_quotas(cluster.image, DescribeClientQuotasRequest(components=[]))
        assert {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
            for entry in described.entries
        } == {entity: values for entity, values in model.items() if values}
    check_checkpoint(cluster.image)


# --- credentials -------------------------------------------------------------------------------------------

USERS = st.sampled_from(["", "ana", "bo", "cy"])
MECHANISMS = st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
DELETIONS = st.fixed_dictionaries({"name": USERS, "mechanism": MECHANISMS})
UPSERTIONS = st.fixed_dictionaries(
    {
        "name": USERS,
        "mechanism": MECHANISMS,
        "iterations": st.sampled_from([4095, 4096, 8192, 16_384, 16_385]),
        "salt": st.binary(max_size=3),
        "salted_password": st.binary(max_size=3),
    }
)
CREDENTIAL_CHANGES = st.fixed_dictionaries(
    {
        "deletions": st.lists(DELETIONS, max_size=3),
        "upsertions": st.lists(UPSERTIONS, max_size=3),
    }
)


@settings(max_examples=EXAMPLES)
@given(st.lists(CREDENTIAL_CHANGES, max_size=5))
def test_credentials_are_described_as_they_were_set(requests: list[dict[str, list[dict[str, Any]]]]) -> None:
    cluster = SmallCluster(brokers=0)
    model: dict[tuple[str, str], int] = {}
    for body in requests:
        request = AlterUserScramCredentialsRequest.model_validate(body)
        decision = decide_alter_user_scram_credentials(cluster.image, request)
        cluster.commit(decision)
        done = {result.user for result in decision.reply.results if result.error_code is ErrorCode.NONE}
        for change in body["deletions"]:
            if change["name"] in done:
                del model[change["name"], change["mechanism"]]
        for change in body["upsertions"]:
            if change["name"] in done:
                model[change["name"], change["mechanism"]] = change["iterations"]
        described = describe_user_scram_credentials(cluster.image, DescribeUserScramCredentialsRequest())
        assert {
            (result.user, info.mechanism): info.iterations
            for result in described.results
            for info in result.credential_infos
        } == model
    check_checkpoint(cluster.image)


# --- ACLs --------------------------------------------------------------------------------------------------

RESOURCE_NAMES = st.sampled_from(["", "*", "o", "ord", "orders", "x"])
PRINCIPALS = st.sampled_from(["User:ana", "User:bo", "bo"])
CREATIONS = st.fixed_dictionaries(
    {
        "resource_type": st.sampled_from(["TOPIC", "GROUP", "ANY"]),
        "resource_name": RESOURCE_NAMES,
        "resource_pattern_type": st.sampled_from(["LITERAL", "PREFIXED", "MATCH"]),
        "principal": PRINCIPALS,
        "operation": st.sampled_from(["READ", "WRITE"]),
        "permission_type": st.sampled_from(["ALLOW", "DENY"]),
    }
)
FIELDS = ("resource_type", "resource_name", "resource_pattern_type", "principal", "operation", "permission_type")
FILTERS = st.fixed_dictionaries(
    {
        "resource_type_filter": st.sampled_from(["ANY", "TOPIC"]),
        "resource_name_filter": st.none() | RESOURCE_NAMES,
        "pattern_type_filter": st.sampled_from(["ANY", "MATCH", "LITERAL", "PREFIXED"]),
        "principal_filter": st.none() | PRINCIPALS,
        "operation": st.sampled_from(["ANY", "READ"]),
    }
)


def means(wanted: dict[str, Any], acl: tuple[str, ...]) -> bool:
    """Kafka's filter, said once more."""
    type_, name, pattern, principal, operation, _ = acl
    wanted_name, wanted_pattern = wanted["resource_name_filter"], wanted["pattern_type_filter"]
    if wanted_pattern == "MATCH" and wanted_name is not None:
        fits = name in (wanted_name, "*") if pattern == "LITERAL" else wanted_name.startswith(name)
    else:
        fits = wanted_pattern in ("ANY", "MATCH", pattern) and wanted_name in (None, name)
    return (
        fits
        and wanted["resource_type_filter"] in ("ANY", type_)
        and wanted["principal_filter"] in (None, principal)
        and wanted["operation"] in ("ANY", operation)
    )


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(st.lists(CREATIONS, max_size=6), st.lists(FILTERS, max_size=2), FILTERS), max_size=4))
def test_acls_are_described_as_they_were_created(
    steps: list[tuple[list[dict[str, str]], list[dict[str, Any]], dict[str, Any]]],
) -> None:
    cluster = SmallCluster(brokers=0)
    ids = (number.to_bytes(16, "big") for number in count(100))
    model: set[tuple[str, ...]] = set()
    for creations, removals, looked_for in steps:
        creation = decide_create_acls(
            cluster.image, CreateAclsRequest.model_validate({"creations": creations}), lambda: next(ids)
        )
        cluster.commit(creation)
        for asked, result in zip(creations, creation.reply.results, strict=True):
            if result.error_code is ErrorCode.NONE:
                model.add(tuple(asked[field] for field in FIELDS))
        removal = decide_delete_acls(cluster.image, DeleteAclsRequest.model_validate({"filters": removals}))
        cluster.commit(removal)
        for wanted, removed in zip(removals, removal.reply.filter_results, strict=True):
            assert len(removed.matching_acls) == sum(means(wanted, acl) for acl in model)
        model = {acl for acl in model if not any(means(wanted, acl) for wanted in removals)}
        described = describe_acls(cluster.image, AclFilter.model_validate(looked_for))
        found = [
            (r.resource_type, r.resource_name, r.pattern_type, a.principal, a.operation, a.permission_type)
            for r in described.resources
            for a in r.acls
        ]
        assert len(found) == len(set(found))
        assert set(found) == {acl for acl in model if means(looked_for, acl)}
    check_checkpoint(cluster.image)
