"""The way back from changes of configs, labels, features, quotas, ACLs and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.configs.resources import is_sensitive, type_name
from quorate.controller.plans.setting_facts import acl_text, entity_text
from quorate.controller.plans.way_back_parts import FoundWays, RequestStates
from quorate.controller.protocol.acls import AclCreation, AclFilter, CreateAclsRequest, DeleteAclsRequest
from quorate.controller.protocol.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from quorate.controller.protocol.features import FeatureUpdate, UpdateFeaturesRequest
from quorate.controller.protocol.labels import LABEL_ITEMS_MAX, AlterLabelsRequest, LabelEntry
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterQuotaOp,
    QuotaEntityPart,
)
from quorate.controller.protocol.scram import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE
from quorate.snapshots.views.as_json import acl_json
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS, name_of

_LABELLED_TOPIC: Final = ("topic:", "partition:")


def settings_back(states: RequestStates, found: FoundWays) -> None:
    """Set what was set before, and remove what was not."""
    _configs_back(states, found)
    _labels_back(states, found)
    _features_back(states, found)
    _quotas_back(states, found)
    _acls_back(states, found)
    _credentials_back(states, found)
    tokens = [image.delegation_tokens.tokens for image in states[:2]]
    updated, removed = tokens[1].changes_since(tokens[0])
    found.lost += (f"delegation token {token}: see `quorate tokens`" for token in sorted(updated | removed))


def _restored(
    about: str,
    values: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]],
    found: FoundWays,
    shown: Any = lambda name, value: value,
) -> dict[str, Any]:
    """Values before of what the request changed, by name; None: there was none. Not of what others changed since."""
    before, after, now = values
    restored = {}
    for name in sorted(before.keys() | after.keys()):
        old, new, current = before.get(name), after.get(name), now.get(name)
        if old == new or current == old:
            continue
        if current == new:
            restored[name] = old
        else:
            is_now = "no longer set" if current is None else f"{shown(name, current)} now"
            found.since.append(f"{about}: {name} is {is_now}")
    return restored


# --- configs, labels, features -----------------------------------------------------------------------


def _configs_back(states: RequestStates, found: FoundWays) -> None:
    images = tuple(image.configs for image in states)
    updated, removed = images[1].resources.changes_since(images[0].resources)
    resources: list[AlterConfigsResource] = []
    for kind, name in sorted(updated | removed):
        if kind == TOPIC_RESOURCE and name in states.own_topics:
            continue
        about = f"configs of {type_name(kind).lower().replace('_', '-')}/{name}"
        if kind == TOPIC_RESOURCE and name not in states.now.topics.by_name:
            found.since.append(f"topic {name} is gone")
            continue

        def shown(config: str, value: str, kind: int = kind) -> str:
            return "another secret" if is_sensitive(kind, config) else value

        before, after, now = (image.of(kind, name) for image in images)
        restored = _restored(about, (before, after, now), found, shown)
        configs = [
            AlterableConfig(name=config, config_operation="DELETE" if value is None else "SET", value=value)
            for config, value in restored.items()
        ]
        if configs:
            fields = {"resource_type": type_name(kind), "resource_name": name, "configs": configs}
            resources.append(AlterConfigsResource.model_validate(fields))
    if resources:
        request = IncrementalAlterConfigsRequest(resources=resources)
        found.changes.append(PlannedChange(incremental_alter_configs=request))


def _labels_back(states: RequestStates, found: FoundWays) -> None:
    images = tuple(image.labels for image in states)
    updated, removed = images[1].resources.changes_since(images[0].resources)
    own = states.own_topics
    changes: list[LabelEntry] = []
    for resource in sorted(updated | removed):
        kind, _, name = resource.partition(":")
        if (name if kind == "topic" else name.rpartition("-")[0]) in own and resource.startswith(_LABELLED_TOPIC):
            continue
        before, after, now = (image.of(resource) for image in images)
        restored = _restored(f"labels of {resource}", (before, after, now), found)
        changes += (LabelEntry(resource=resource, key=key, value=value) for key, value in restored.items())
    for first in range(0, len(changes), LABEL_ITEMS_MAX):
        request = AlterLabelsRequest(changes=changes[first : first + LABEL_ITEMS_MAX])
        found.changes.append(PlannedChange(alter_labels=request))


def _features_back(states: RequestStates, found: FoundWays) -> None:
    before, after, now = ({**image.features.levels} for image in states)
    updates = []
    for name, level in _restored("features", (before, after, now), found).items():
        is_lower = (level or 0) < after.get(name, 0)
        kind: Literal["SAFE_DOWNGRADE", "UPGRADE"] = "SAFE_DOWNGRADE" if is_lower else "UPGRADE"
        updates.append(FeatureUpdate(feature=name, max_version_level=level or 0, upgrade_type=kind))
        if not is_lower:
            found.lost.append(f"what the downgrade of {name} took away, if anything")
    if updates:
        found.changes.append(PlannedChange(update_features=UpdateFeaturesRequest(feature_updates=updates)))


# --- quotas and access -------------------------------------------------------------------------------


def _quotas_back(states: RequestStates, found: FoundWays) -> None:
    images = tuple(image.client_quotas.entities for image in states)
    updated, removed = images[1].changes_since(images[0])
    entries = []
    for entity in sorted(updated | removed, key=repr):
        parts = [QuotaEntityPart(entity_type=part.entity_type, entity_name=part.entity_name) for part in entity]
        nothing: Mapping[str, float] = {}
        before, after, now = (image.get(entity) or nothing for image in images)
        restored = _restored(f"quotas of {entity_text(parts)}", (before, after, now), found)
        ops = [
            AlterQuotaOp(key=key, remove=True) if value is None else AlterQuotaOp(key=key, value=value)
            for key, value in restored.items()
        ]
        if ops:
            entries.append(AlterClientQuotasEntry(entity=parts, ops=ops))
    if entries:
        found.changes.append(PlannedChange(alter_client_quotas=AlterClientQuotasRequest(entries=entries)))


def _acls_back(states: RequestStates, found: FoundWays) -> None:
    before, after, now = (image.acls.entries for image in states)
    updated, removed = after.changes_since(before)
    present = {acl_text(entry) for entry in now.values()}
    added = [after[one] for one in updated if one not in before]
    gone = [before[one] for one in removed]
    found.since += (f"ACL {text} is gone" for text in map(acl_text, added) if text not in present)
    found.since += (f"ACL {text} is there again" for text in map(acl_text, gone) if text in present)
    filters = [_filter(entry) for entry in sorted(added, key=acl_text) if acl_text(entry) in present]
    creations = [_creation(entry) for entry in sorted(gone, key=acl_text) if acl_text(entry) not in present]
    # What was denied is denied again before what was allowed in its place is taken away.
    if creations:
        found.changes.append(PlannedChange(create_acls=CreateAclsRequest(creations=creations)))
    if filters:
        found.changes.append(PlannedChange(delete_acls=DeleteAclsRequest(filters=filters)))


def _creation(entry: AccessControlEntryRecord) -> AclCreation:
    row = acl_json(entry)
    return AclCreation(
        resource_type=row["resource_type"],
        resource_name=row["resource_name"],
        resource_pattern_type=row["pattern_type"],
        principal=row["principal"],
        host=row["host"],
        operation=row["operation"],
        permission_type=row["permission"],
    )


def _filter(entry: AccessControlEntryRecord) -> AclFilter:
    row = acl_json(entry)
    return AclFilter(
        resource_type_filter=row["resource_type"],
        resource_name_filter=row["resource_name"],
        pattern_type_filter=row["pattern_type"],
        principal_filter=row["principal"],
        host_filter=row["host"],
        operation=row["operation"],
        permission_type=row["permission"],
    )


def _credentials_back(states: RequestStates, found: FoundWays) -> None:
    before, after, now = (image.scram.credentials for image in states)
    updated, removed = after.changes_since(before)
    deletions = []
    for user, mechanism in sorted(updated | removed):
        key, text = (user, mechanism), f"the {name_of(SCRAM_MECHANISMS, mechanism)} credential of {user}"
        if key in before:
            found.lost.append(f"{text}: only who knows the password can set it again")
        elif now.get(key) != after[key]:
            found.since.append(f"{text} is another one now, or gone")
        else:
            deletions.append(ScramCredentialDeletion(name=user, mechanism=name_of(SCRAM_MECHANISMS, mechanism)))
    if deletions:
        request = AlterUserScramCredentialsRequest(deletions=deletions)
        found.changes.append(PlannedChange(alter_user_scram_credentials=request))
