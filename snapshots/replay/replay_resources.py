"""Replay of what hangs on names: configs, labels, quotas, producer ids, ACLs, credentials, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image_editor import ImageEditor
from quorate.snapshots.image.image_parts import MIN_INSYNC_REPLICAS, TOPIC_RESOURCE, ProducerIdsImage
from quorate.snapshots.image.labels import Label, label_of


def _config(editor: ImageEditor, record: ConfigRecord) -> None:
    resource = (record.resource_type, record.resource_name)
    label = label_of(*resource, record.name)
    if label is not None:
        _label(editor, label, record.value)
    elif record.value is None:
        editor.configs.remove(resource, record.name)
    else:
        editor.configs.put(resource, record.name, record.value)
    if record.name == MIN_INSYNC_REPLICAS and record.resource_type == TOPIC_RESOURCE:
        topic = editor.topics_by_name.get(record.resource_name)
        if topic is not None:
            editor.count_by_min_isr(topic)


def _label(editor: ImageEditor, label: Label, value: str | None) -> None:
    if value is None:
        editor.labels.remove(*label)
    else:
        editor.labels.put(*label, value)


def _client_quota(editor: ImageEditor, record: ClientQuotaRecord) -> None:
    entity = tuple(sorted(record.entity, key=lambda part: part.entity_type))
    if record.remove:
        editor.quotas.remove(entity, record.key)
    else:
        editor.quotas.put(entity, record.key, record.value)


def _producer_ids(editor: ImageEditor, record: ProducerIdsRecord) -> None:
    present = editor.producer_ids.next_producer_id
    if present is not None and record.next_producer_id <= present:
        raise ReplayError(f"ProducerIdsRecord: next id {record.next_producer_id} is not above {present}")
    editor.producer_ids = ProducerIdsImage(record.next_producer_id)


def _access_control_entry(editor: ImageEditor, record: AccessControlEntryRecord) -> None:
    editor.acls[record.id] = record


def _remove_access_control_entry(editor: ImageEditor, record: RemoveAccessControlEntryRecord) -> None:
    if record.id not in editor.acls:
        raise ReplayError(f"RemoveAccessControlEntryRecord: there is no entry {uuid_text(record.id)}")
    editor.acls.remove(record.id)


def _scram_credential(editor: ImageEditor, record: UserScramCredentialRecord) -> None:
    editor.scram[record.name, record.mechanism] = record


def _remove_scram_credential(editor: ImageEditor, record: RemoveUserScramCredentialRecord) -> None:
    key = (record.name, record.mechanism)
    if key not in editor.scram:
        raise ReplayError(
            f"RemoveUserScramCredentialRecord: user {record.name!r} has no credential of mechanism {record.mechanism}"
        )
    editor.scram.remove(key)


def _delegation_token(editor: ImageEditor, record: DelegationTokenRecord) -> None:
    editor.tokens[record.token_id] = record


def _remove_delegation_token(editor: ImageEditor, record: RemoveDelegationTokenRecord) -> None:
    editor.tokens.remove(record.token_id)  # Kafka does not mind one that is not there


RULES: Final[dict[type, Callable[[ImageEditor, Any], None]]] = {
    ConfigRecord: _config,
    ClientQuotaRecord: _client_quota,
    ProducerIdsRecord: _producer_ids,
    AccessControlEntryRecord: _access_control_entry,
    RemoveAccessControlEntryRecord: _remove_access_control_entry,
    UserScramCredentialRecord: _scram_credential,
    RemoveUserScramCredentialRecord: _remove_scram_credential,
    DelegationTokenRecord: _delegation_token,
    RemoveDelegationTokenRecord: _remove_delegation_token,
}
