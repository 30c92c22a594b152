"""The rest of two states: quotas, ACLs, credentials and what else is no table of its own."""

from __future__ import annotations

import json
from typing import Any

from quorate.pipeline.comparing.entries import ENTRY_KINDS, OF_TABLES, entry_differences
from quorate.pipeline.comparing.report import Differences

KIND = {kind.name: kind for kind in ENTRY_KINDS}
SALT, KEY = "c2FsdA==", "a2V5"


def entry(kind: str, **data: Any) -> dict[str, str]:
    return {"kind": kind, "data": json.dumps(data)}


def differing(name: str, a: list[dict[str, str]], b: list[dict[str, str]], *, own: bool = True) -> Differences:
    return entry_differences(KIND[name], a, b, own=own, limit=9)


def credential(name: str, *, stored: str = KEY, iterations: int = 4096) -> dict[str, str]:
    secret = {"salt": SALT, "storedKey": stored, "serverKey": KEY}
    return entry("USER_SCRAM_CREDENTIAL_RECORD", name=name, mechanism=1, iterations=iterations, **secret)


def quota(value: float, *entity: tuple[str, str | None]) -> dict[str, str]:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return entry("CLIENT_QUOTA_RECORD", entity=parts, key="producer_byte_rate", value=value, remove=False)


def test_credential_that_differs_is_told_without_what_it_is() -> None:
    """Only that it is another one. Of another cluster it always is, as salts are drawn: then only the rest counts."""
    a, b = [credential("ana"), credential("ben")], [credential("ana", stored="b3RoZXI="), credential("eva")]

    found = differing("credentials", a, b)

    assert found.counts == {"only_a": 1, "only_b": 1, "changed": 1}
    assert found.by_field == {"secret": 1}
    assert found.first[0] == {
        "key": {"name": "ana", "mechanism": "1"},
        "change": "changed",
        "field": "secret",
        "old": "one",
        "new": "another",
    }
    assert not any(secret in str(found) for secret in (SALT, KEY, "b3RoZXI="))
    between = differing("credentials", a[:1], [credential("ana", stored="b3RoZXI=", iterations=8192)], own=False)
    assert (between.by_field, between.compared) == ({"iterations": 1}, ("iterations",))


def test_token_that_lives_longer_is_told_by_its_id() -> None:
    a, b = ([entry("DELEGATION_TOKEN_RECORD", tokenId="t", expirationTimestamp=at)] for at in (1, 2))

    found = differing("tokens", a, b)

    assert found.counts == {"only_a": 0, "only_b": 0, "changed": 1}
    assert found.by_field == {"expirationTimestamp": 1}
    assert found.first[0]["key"] == {"tokenId": "t"}


def test_quota_is_told_by_its_entity_in_any_order() -> None:
    a = [quota(1.0, ("user", "ana"), ("client-id", None)), quota(5.0, ("user", None))]
    b = [quota(2.0, ("client-id", None), ("user", "ana")), quota(5.0, ("user", None))]

    found = differing("quotas", a, b)

    assert (found.rows_a, found.rows_b, found.compared) == (2, 2, ("value",))
    (line,) = found.first
    assert line["key"] == {"entity": "client-id=<default>,user=ana", "key": "producer_byte_rate"}
    assert (line["old"], line["new"]) == ("1.0", "2.0")


def test_acl_is_the_same_whatever_its_id_is() -> None:
    rule = {"principal": "User:ana", "host": "*", "operation": 2, "permissionType": 3}
    resource = {"resourceType": 5, "resourceName": "tx-", "patternType": 4}
    a = [entry("ACCESS_CONTROL_ENTRY_RECORD", id="one", **rule, **resource)]
    b = [entry("ACCESS_CONTROL_ENTRY_RECORD", id="two", **rule, **resource)]

    assert differing("acls", a, b).is_equal
    assert differing("acls", a, []).counts == {"only_a": 1, "only_b": 0, "changed": 0}


def test_record_of_which_there_is_one_is_told_by_its_type() -> None:
    """Producer ids are every cluster's own."""
    a, b = ([entry("PRODUCER_IDS_RECORD", brokerId=-1, brokerEpoch=-1, nextProducerId=n)] for n in (1000, 2000))

    (line,) = differing("producer_ids", a, b).first
    assert (line["key"], line["old"], line["new"]) == ({"record": "PRODUCER_IDS_RECORD"}, "1000", "2000")
    assert differing("producer_ids", a, b, own=False).is_equal


def test_limit_cuts_what_is_told_one_by_one_and_nothing_else() -> None:
    a = [entry("FEATURE_LEVEL_RECORD", name=f"feature-{n}", featureLevel=1) for n in range(5)]

    found = entry_differences(KIND["features"], a, [], own=True, limit=2)

    assert (found.total, [line["key"]["name"] for line in found.first]) == (5, ["feature-0", "feature-1"])


def test_kinds_of_entries_name_no_type_twice() -> None:
    named = [record for kind in ENTRY_KINDS for record in kind.records] + list(OF_TABLES)

    assert len(named) == len(set(named))
