"""Which quota holds for a client: the order and the sharing that Kafka's own test of it (KIP-55) expects."""

from __future__ import annotations

import pytest

from quorate.controller.quotas.entities import MUTATION_RATE, rate_of_client
from quorate.metadata_log.records.records import EntityData
from quorate.snapshots.image.image_parts import QuotaEntity

DEFAULT = "<default>"


def entity(user: str | None, client_id: str | None) -> QuotaEntity:
    named = (("client-id", client_id), ("user", user))
    return tuple(EntityData(type_, None if name == DEFAULT else name) for type_, name in named if name is not None)


#: Those of Kafka's ``ClientQuotaManagerTest.testQuotaConfigPrecedence``.
QUOTAS = {
    (DEFAULT, None): 1000.0,
    (None, DEFAULT): 2000.0,
    (DEFAULT, DEFAULT): 3000.0,
    ("userA", None): 4000.0,
    ("userA", "client1"): 5000.0,
    ("userB", None): 6000.0,
    ("userB", "client1"): 7000.0,
    ("userB", DEFAULT): 8000.0,
    ("userC", None): 10000.0,
    (None, "client1"): 9000.0,
}
NO_BOTH = {(DEFAULT, DEFAULT)}
NO_USER = {*NO_BOTH, (DEFAULT, None)}
NO_CLIENT = {*NO_USER, (None, DEFAULT)}


@pytest.mark.parametrize(
    ("user", "client_id", "without", "rate", "bucket"),
    [
        ("userA", "client1", set(), 5000, ("userA", "client1")),
        ("userA", "client2", set(), 4000, ("userA", "")),
        ("userB", "client1", set(), 7000, ("userB", "client1")),
        ("userB", "client2", set(), 8000, ("userB", "client2")),
        ("userC", "client1", set(), 10000, ("userC", "")),
        ("userD", "client1", set(), 3000, ("userD", "client1")),
        ("userD", "client1", NO_BOTH, 1000, ("userD", "")),
        ("userF", "client4", NO_USER, 2000, ("", "client4")),
        ("userF", "client1", NO_USER, 9000, ("", "client1")),
        ("userB", "", set(), 6000, ("userB", "")),
        ("userD", "", set(), 1000, ("userD", "")),
        ("userD", "", NO_USER, None, None),
        ("userF", "client4", NO_CLIENT, None, None),
    ],
)
def test_most_specific_quota_holds_and_is_shared_as_in_kafka(
    user: str, client_id: str, without: set[tuple[str, str]], rate: float | None, bucket: tuple[str, str] | None
) -> None:
    quotas = {entity(*names): {MUTATION_RATE: value} for names, value in QUOTAS.items() if names not in without}
    found = rate_of_client(quotas, MUTATION_RATE, user, client_id)
    assert (found and found.per_second, found and found[1:]) == (rate, bucket)


def test_quota_of_another_kind_leaves_the_place_to_the_next_entity() -> None:
    quotas = {
        entity("ana", None): {"producer_byte_rate": 1.0},
        entity(DEFAULT, None): {MUTATION_RATE: 5.0},
    }
    found = rate_of_client(quotas, MUTATION_RATE, "ana", "")
    assert found == (5.0, "ana", "")
