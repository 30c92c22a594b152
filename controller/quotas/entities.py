"""The rate that holds for a client: that of the most specific entity that has one (Kafka's ``ClientQuotaManager``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from quorate.metadata_log.records.records import EntityData
from quorate.snapshots.image.image_parts import QuotaEntity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_RATE: Final = "connection_creation_rate"
#: The quotas that controllers act on. The others are about data, which brokers serve.
ENFORCED: Final = frozenset({MUTATION_RATE, CONNECTION_RATE})


class ClientRate(NamedTuple):
    """A rate, and whose bucket it fills: of a user, of a client id, or of the two (else one is empty)."""

    per_second: float
    user: str
    client_id: str


def rate_of_client(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str, user: str, client_id: str
) -> ClientRate | None:
    """The rate of the quota ``key`` that holds for a client; None: nothing bounds it.

    A default has a bucket for each user or client id that it holds for. Who names no client id has no quota of one.
    """
    for entity, of_user, of_client_id in _entities(user, client_id):
        rate = (quotas.get(entity) or {}).get(key)
        if rate is not None:
            return ClientRate(rate, of_user, of_client_id)
    return None


def _entities(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, str, str]]:
    """From the most specific on: the entity, and the user and client id whose bucket it is about."""
    ids = [EntityData(CLIENT_ID, client_id), EntityData(CLIENT_ID, None)] if client_id else []
    for name in (user, None):
        user_part = EntityData(USER, name)
        for id_part in ids:
            yield (id_part, user_part), user, client_id
        yield (user_part,), user, ""
    for id_part in ids:
        yield (id_part,), "", client_id
