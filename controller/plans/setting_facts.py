"""The facts about configs, labels, features, quotas, ACLs and credentials."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from quorate.controller.access.acl_bindings import present_bindings, wanted_binding
from quorate.controller.access.acl_filters import matches
from quorate.controller.api.answers.plan_models import Fact, FactValue
from quorate.controller.configs.resources import RESOURCE_TYPES, is_sensitive
from quorate.controller.plans.partition_facts import identity_fact
from quorate.controller.protocol.acls import AclCreation, AclFilter, CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest, ResourceName
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.controller.protocol.labels import AlterLabelsRequest
from quorate.controller.protocol.quotas import AlterClientQuotasRequest, QuotaEntityPart
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest
from quorate.metadata_log.records.records import AccessControlEntryRecord, EntityData
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.as_json import acl_json
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS

#: Hexadecimal digits of a digest that stands for a secret: nobody has to find the secret by it.
_DIGEST_CHARS: Final = 16
_HIDDEN: Final = re.compile(r"sha256:[0-9a-f]{16}")
_MECHANISM_IDS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}


def hidden(secret: bytes) -> str:
    """The text that stands for a secret in a fact: another secret has another."""
    return f"sha256:{hashlib.sha256(secret).hexdigest()[:_DIGEST_CHARS]}"


def is_hidden(value: object) -> bool:
    """Whether a value of a fact stands for a secret. It is shown to nobody: who reads it may try what the secret is."""
    return isinstance(value, str) and _HIDDEN.fullmatch(value) is not None


# --- configs -----------------------------------------------------------------------------------------


def of_config_changes(image: MetadataImage, request: IncrementalAlterConfigsRequest) -> Iterator[Fact]:
    """The facts that single changes go by: what is set of that which they name."""
    for resource in request.resources:
        present = _configs(image, resource)
        yield from _config_facts(image, resource, {one.name: present.get(one.name) for one in resource.configs})


def of_config_replacement(image: MetadataImage, request: AlterConfigsRequest) -> Iterator[Fact]:
    """The facts that a replacement goes by: all that is set."""
    for resource in request.resources:
        named: dict[str, str | None] = dict.fromkeys(one.name for one in resource.configs)
        yield from _config_facts(image, resource, {**named, **_configs(image, resource)})


def _configs(image: MetadataImage, resource: ResourceName) -> Mapping[str, str]:
    return image.configs.of(RESOURCE_TYPES[resource.resource_type], resource.resource_name)


def _config_facts(image: MetadataImage, resource: ResourceName, configs: Mapping[str, str | None]) -> Iterator[Fact]:
    if resource.resource_type == "TOPIC":
        yield identity_fact(image, resource.resource_name)
    kind = RESOURCE_TYPES[resource.resource_type]
    values: dict[str, FactValue] = {
        name: hidden(value.encode()) if value is not None and is_sensitive(kind, name) else value
        for name, value in configs.items()
    }
    yield Fact(about=f"configs of {resource_text(resource)}", values=values)


def resource_text(resource: ResourceName) -> str:
    """As it is named on the command line."""
    return f"{resource.resource_type.lower().replace('_', '-')}/{resource.resource_name}"


# --- labels, features, quotas ------------------------------------------------------------------------


def of_labels(image: MetadataImage, request: AlterLabelsRequest) -> Iterator[Fact]:
    """The facts that changes of labels go by, beside their conditions."""
    for one in request.changes:
        yield Fact(
            about=f"label {one.key} of {one.resource}",
            values={"value": image.labels.of(one.resource).get(one.key)},
        )


def of_features(image: MetadataImage, request: UpdateFeaturesRequest) -> Iterator[Fact]:
    """The facts that changes of levels go by."""
    for one in request.feature_updates:
        is_kraft = one.feature == "kraft.version"
        level = image.kraft.version if is_kraft else image.features.levels.get(one.feature, 0)
        yield Fact(about=f"feature {one.feature}", values={"level": level})


def of_quotas(image: MetadataImage, request: AlterClientQuotasRequest) -> Iterator[Fact]:
    """The facts that changes of quotas go by."""
    for entry in request.entries:
        parts = sorted((part.entity_type, part.entity_name) for part in entry.entity if part.entity_type)
        entity = tuple(EntityData(type_, name) for type_, name in parts)
        present: Mapping[str, float] = image.client_quotas.entities.get(entity) or {}
        # As text: JSON has more than one form of a number with a fraction.
        values: dict[str, FactValue] = {
            op.key: None if op.key not in present else repr(present[op.key]) for op in entry.ops
        }
        yield Fact(about=f"quotas of {entity_text(entry.entity)}", values=values)


def entity_text(entity: Iterable[QuotaEntityPart]) -> str:
    """As it is named on the command line."""
    return " ".join(f"{part.entity_type}/{part.entity_name or ''}" for part in entity)


# --- access ------------------------------------------------------------------------------------------


def of_new_acls(image: MetadataImage, request: CreateAclsRequest) -> Iterator[Fact]:
    """The facts that new ACLs go by: whether they are there."""
    present = present_bindings(image.acls.entries.values(), request.creations)
    for one in request.creations:
        is_there = wanted_binding(one) in present
        yield Fact(about=f"ACL {acl_line(one)}", values={"is there": "yes" if is_there else "no"})


def of_removed_acls(image: MetadataImage, request: DeleteAclsRequest) -> Iterator[Fact]:
    """The facts that a removal goes by: the ACLs that its filters match.

    Raises:
        LimitExceeded: POLICY_VIOLATION, as the removal itself: they look at too many ACLs, or match too many.
    """
    found = matches(image.acls.entries.values(), request.filters)
    for wanted, entries in zip(request.filters, found, strict=True):
        yield Fact(about=f"ACLs that are {filter_text(wanted)}", values={acl_text(entry): "there" for entry in entries})


def acl_line(one: AclCreation) -> str:
    """An ACL that is to be in a line, as ``acl_text`` has it."""
    return (
        f"{one.permission_type} {one.principal} from {one.host} to {one.operation} "
        f"{one.resource_type} {one.resource_pattern_type} {one.resource_name}"
    )


def acl_text(entry: AccessControlEntryRecord) -> str:
    """An ACL in a line."""
    row = acl_json(entry)
    return (
        f"{row['permission']} {row['principal']} from {row['host']} to {row['operation']} "
        f"{row['resource_type']} {row['pattern_type']} {row['resource_name']}"
    )


def filter_text(wanted: AclFilter) -> str:
    """A filter in a line."""
    said = {
        "": wanted.permission_type,
        "of ": wanted.principal_filter,
        "from ": wanted.host_filter,
        "to ": wanted.operation,
        "on ": wanted.resource_type_filter,
        "by ": wanted.pattern_type_filter,
        "named ": wanted.resource_name_filter,
    }
    return " ".join(f"{word}{value}" for word, value in said.items() if value not in (None, "ANY")) or "of any kind"


def of_credentials(image: MetadataImage, request: AlterUserScramCredentialsRequest) -> Iterator[Fact]:
    """The facts that changes of credentials go by."""
    named = [(one.name, one.mechanism) for one in request.deletions]
    named += ((one.name, one.mechanism) for one in request.upsertions)
    for name, mechanism in named:
        present = image.scram.credentials.get((name, _MECHANISM_IDS.get(mechanism, -1)))
        values: dict[str, FactValue] = {"iterations": None, "credential": None}
        if present is not None:
            secret = present.salt + present.stored_key + present.server_key
            values = {"iterations": present.iterations, "credential": hidden(secret)}
        yield Fact(about=f"{mechanism} credential of {name}", values=values)
