"""Requests about who may do what, and about ids: quotas, credentials, ACLs, blocks of producer ids."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

from quorate.controller.protocol import AllocateProducerIdsRequest
from quorate.controller.protocol.acls import CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.snapshots.image.image import MetadataImage
from tests.property.controller_machine.stage import Node

_TIMEOUT_MS: Final = 2_000.0
_USERS: Final = ("ana", "ben", None)
_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")


def access_request(chance: Random, image: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    """Any of them."""
    return chance.choice((_quotas, _credentials, _create_acls, _delete_acls, _producer_ids))(chance, image)


def _quotas(chance: Random, _: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    entity = [{"entity_type": "user", "entity_name": chance.choice(_USERS)}]
    change = {"key": chance.choice(["producer_byte_rate", "request_percentage", "nonsense"])}
    if chance.random() < 0.3:
        op: dict[str, object] = change | {"remove": True}
    else:
        op = change | {"value": float(chance.randint(0, 3))}
    values = {"entries": [{"entity": entity, "ops": [op]}], "validate_only": chance.random() < 0.1}
    request = AlterClientQuotasRequest.model_validate(values)
    return lambda node: node.operations.access.alter_client_quotas(request, _TIMEOUT_MS)


def _credentials(chance: Random, _: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    change = {"name": chance.choice(["ana", "ben", ""]), "mechanism": chance.choice(_MECHANISMS)}
    if chance.random() < 0.4:
        values: dict[str, object] = {"deletions": [change]}
    else:
        secret = {"salt": chance.randbytes(16), "salted_password": chance.randbytes(32)}
        values = {"upsertions": [change | secret | {"iterations": chance.choice([1, 4096])}]}
    request = AlterUserScramCredentialsRequest.model_validate(values)
    return lambda node: node.operations.access.alter_user_scram_credentials(request, _TIMEOUT_MS)


def _create_acls(chance: Random, _: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    creation = {
        "resource_type": "TOPIC",
        "resource_name": chance.choice(["a", "ab", ""]),
        "resource_pattern_type": chance.choice(["LITERAL", "PREFIXED"]),
        "principal": chance.choice(["User:ana", "User:ben", "nobody"]),
        "operation": "READ",
        "permission_type": "ALLOW",
    }
    request = CreateAclsRequest.model_validate({"creations": [creation] * chance.randint(1, 2)})
    return lambda node: node.operations.access.create_acls(request, _TIMEOUT_MS)


def _delete_acls(chance: Random, _: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    filters = [{"resource_name_filter": chance.choice(["a", "ab", None]), "pattern_type_filter": "MATCH"}, {}]
    request = DeleteAclsRequest.model_validate({"filters": chance.sample(filters, chance.randint(1, 2))})
    return lambda node: node.operations.access.delete_acls(request, _TIMEOUT_MS)


def _producer_ids(chance: Random, image: MetadataImage) -> Callable[[Node], Coroutine[Any, Any, Any]]:
    broker = chance.randrange(4)
    known = image.cluster.brokers.get(broker)
    epoch = (known.epoch if known else 0) - (chance.random() < 0.1)
    request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
    return lambda node: node.operations.allocate_producer_ids(request, _TIMEOUT_MS)
