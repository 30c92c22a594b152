"""Changes of configs (Kafka's ``ConfigurationControlManager``).

A resource's changes take effect together or not at all; other resources of the request go on. While eligible leader
replicas are kept (KIP-966), ``min.insync.replicas`` must be the same to every controller: it is set for the cluster and
for topics only, and a change of it forgets the replicas that the old value made eligible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from quorate.controller.configs.resources import (
    RESOURCE_TYPES,
    ConfigResource,
    check_configs,
    check_exists,
    default_of,
    is_list,
    type_name,
)
from quorate.controller.configs.topic_configs import MIN_ISR_CONFIG
from quorate.controller.configs.values import invalid_config, list_items
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import CORDONED_DIRECTORIES_LEVEL
from quorate.controller.decisions.policies import ChangedConfigs
from quorate.controller.protocol.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResult,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    ReplacedConfigsResource,
)
from quorate.controller.protocol.limits import check_record_count
from quorate.controller.protocol.topics import TopicConfig
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.limits import STRING_BYTES_MAX
from quorate.metadata_log.records.records import ClearElrRecord, ConfigRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE

_R = TypeVar("_R", AlterConfigsResource, ReplacedConfigsResource)

_CORDONED: Final = "cordoned.log.dirs"


@dataclass(frozen=True, slots=True)
class _ConfigChanges:
    """The changes to be made to one resource's configs; None = the config goes."""

    resource: ConfigResource
    present: Mapping[str, str]
    explicit: Mapping[str, str | None]
    #: Configs that a full replacement does not name.
    implicit: Sequence[str] = ()

    def records(self) -> list[ConfigRecord]:
        type_, name = self.resource
        changes = [*self.explicit.items(), *((key, None) for key in self.implicit)]
        return [ConfigRecord(type_, name, key, value) for key, value in changes]

    def shown(self) -> ChangedConfigs:
        """The changes that somebody named: those that a policy sees."""
        return ChangedConfigs(type_name(self.resource.type), self.resource.name, MappingProxyType(dict(self.explicit)))


def decide_incremental_alter_configs(
    image: MetadataImage, config: ControllerConfig, request: IncrementalAlterConfigsRequest
) -> Decision[AlterConfigsResponse]:
    """Change configs one by one, each resource with its own outcome.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    return _decide(image, config, request.resources, _incremental, validate_only=request.validate_only)


def decide_alter_configs(
    image: MetadataImage, config: ControllerConfig, request: AlterConfigsRequest
) -> Decision[AlterConfigsResponse]:
    """Replace all configs of resources, each with its own outcome.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    return _decide(image, config, request.resources, _replacement, validate_only=request.validate_only)


def new_topic_configs(
    image: MetadataImage, config: ControllerConfig, topic: str, configs: Sequence[TopicConfig]
) -> list[BatchItem]:
    """The records of a new topic's configs.

    Raises:
        ApiError: INVALID_CONFIG, or what the policy for configs says.
    """
    if not configs:
        return []
    values = {entry.name: entry.value for entry in configs}
    if len(values) != len(configs):
        raise invalid_config("A config is named twice.")
    resource = ConfigResource(TOPIC_RESOURCE, topic)
    check_configs(resource, values, {})
    changes = _ConfigChanges(resource, {}, values)
    records = changes.records()
    for record in records:
        _check_size(record)
    config.policies.check_configs(changes.shown)
    return _versioned(image, records)


def _decide(
    image: MetadataImage,
    config: ControllerConfig,
    resources: Sequence[_R],
    changes_of: Callable[[ConfigResource, Mapping[str, str], _R], _ConfigChanges],
    *,
    validate_only: bool,
) -> Decision[AlterConfigsResponse]:
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    written: list[ConfigRecord] = []
    results: list[AlterConfigsResourceResult] = []
    for named in resources:
        code, message = ErrorCode.NONE, None
        try:
            if counts[named.resource_type, named.resource_name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            if len({entry.name for entry in named.configs}) != len(named.configs):
                raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            resource = ConfigResource(RESOURCE_TYPES[named.resource_type], named.resource_name)
            changes = changes_of(resource, image.configs.of(*resource), named)
            _check(image, config, changes)
            written += changes.records()
        except ApiError as error:
            code, message = error.code, error.message
        results.append(
            AlterConfigsResourceResult(
                error_code=code,
                error_message=message,
                resource_type=named.resource_type,
                resource_name=named.resource_name,
            )
        )
    records = _versioned(image, written)
    check_record_count(len(records))
    return Decision(() if validate_only else records, AlterConfigsResponse(responses=results))


def _versioned(image: MetadataImage, records: Sequence[ConfigRecord]) -> list[BatchItem]:
    """The records, and behind them those that forget what an old ``min.insync.replicas`` made eligible."""
    items: list[BatchItem] = [VersionedRecord(record, 0) for record in records]
    if image.features.is_elr_enabled:
        for record in records:
            if record.name == MIN_ISR_CONFIG:
                topic = record.resource_name if record.resource_type == TOPIC_RESOURCE else ""
                items.append(VersionedRecord(ClearElrRecord(topic), 0))
    return items


# --- one resource ------------------------------------------------------------------------------------


def _incremental(resource: ConfigResource, present: Mapping[str, str], named: AlterConfigsResource) -> _ConfigChanges:
    explicit: dict[str, str | None] = {}
    for change in named.configs:
        before = present.get(change.name)
        after = _changed_value(resource, before, change)
        if after != before or _is_written_again(resource):
            explicit[change.name] = after
    return _ConfigChanges(resource, present, explicit)


def _replacement(
    resource: ConfigResource, present: Mapping[str, str], named: ReplacedConfigsResource
) -> _ConfigChanges:
    explicit = {
        entry.name: entry.value
        for entry in named.configs
        if entry.value != present.get(entry.name) or _is_written_again(resource)
    }
    names = {entry.name for entry in named.configs}
    return _ConfigChanges(resource, present, explicit, sorted(name for name in present if name not in names))


def _is_written_again(resource: ConfigResource) -> bool:
    """A broker's config is written even if it is the same: that makes brokers load again what it points at."""
    return resource.type == BROKER_RESOURCE


def _changed_value(resource: ConfigResource, before: str | None, change: AlterableConfig) -> str | None:
    if change.config_operation == "DELETE":
        return None
    if change.config_operation == "SET":
        return change.value
    name, operation = change.name, change.config_operation
    if not is_list(resource.type, name):
        raise invalid_config(f"Can't {operation} to key {name} because its type is not LIST.")
    if change.value is None:
        raise invalid_config(f"Can't {operation} to key {name} without a value.")
    base = default_of(resource.type, name) if before is None else before
    items = [item for item in (base or "").split(",") if item]
    for item in _items(change.value):
        if operation == "SUBTRACT":
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return ",".join(items)


def _items(value: str) -> list[str]:
    """The items of a list as Java's ``split`` gives them: the empty ones at the end are none, unless it is the only."""
    return value.rstrip(",").split(",") if value.strip(",") or not value else []


def _check(image: MetadataImage, config: ControllerConfig, changes: _ConfigChanges) -> None:
    resource = changes.resource
    for record in changes.records():
        _check_min_isr(image, resource, record)
        if resource.type == BROKER_RESOURCE and record.name == _CORDONED:
            _check_cordoned(image, record.value, changes.present.get(_CORDONED))
        _check_size(record)
    after: dict[str, str | None] = {**changes.present, **changes.explicit}
    kept = {name: value for name, value in after.items() if value is not None and name not in changes.implicit}
    check_configs(resource, kept, changes.present)
    check_exists(image, config, resource)
    config.policies.check_configs(changes.shown)


def _check_min_isr(image: MetadataImage, resource: ConfigResource, record: ConfigRecord) -> None:
    if record.name != MIN_ISR_CONFIG or resource.type != BROKER_RESOURCE or not image.features.is_elr_enabled:
        return
    if resource.is_one_broker:
        raise invalid_config(f"Broker-level {MIN_ISR_CONFIG} cannot be altered while ELR is enabled.")
    if record.value is None:
        raise invalid_config(f"Cluster-level {MIN_ISR_CONFIG} cannot be removed while ELR is enabled.")


def _check_cordoned(image: MetadataImage, value: str | None, before: str | None) -> None:
    """Only a broker knows its directories: through a controller cordoned ones can be given back, no others taken."""
    if image.features.metadata_version < CORDONED_DIRECTORIES_LEVEL:
        raise invalid_config(
            f"The {_CORDONED} configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
        )
    wanted = set() if value is None or not value.strip() else set(list_items(value.strip()))
    if not wanted <= (set() if before is None else set(list_items(before.strip()))):
        raise invalid_config(
            f"When updating {_CORDONED} via controllers,  the new value must be a subset of the current configuration "
            "value."
        )


def _check_size(record: ConfigRecord) -> None:
    """No record can hold a longer string; Kafka counts characters, where only the value can be too long."""
    if len((record.value or "").encode()) > STRING_BYTES_MAX:
        raise invalid_config(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{STRING_BYTES_MAX} bytes."
        )
    if len(record.name.encode()) > STRING_BYTES_MAX or len(record.resource_name.encode()) > STRING_BYTES_MAX:
        message = f"The name of a config or of its resource is longer than {STRING_BYTES_MAX} bytes."
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
