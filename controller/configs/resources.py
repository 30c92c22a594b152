"""The resources that have configs (topics, brokers, groups, client metrics subscriptions): their names and checks.

The place of Kafka's ``ControllerConfigurationValidator`` and ``KafkaConfigSchema``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from quorate.controller.configs.broker_configs import BROKER_LISTS, BROKER_SHOWN
from quorate.controller.configs.group_configs import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    check_client_metrics_configs,
    check_group_configs,
)
from quorate.controller.configs.topic_configs import TOPIC_CONFIGS, check_tiered_storage, check_topic_configs
from quorate.controller.configs.values import ConfigDefinition, ConfigType, invalid_config
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.protocol.topic_names import name_problem
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.config_texts import as_whole
from quorate.metadata_log.records.hidden_values import ShownNames
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)

#: Kafka's names of the types, and their numbers in records.
RESOURCE_TYPES: Final[Mapping[str, int]] = {
    "TOPIC": TOPIC_RESOURCE,
    "BROKER": BROKER_RESOURCE,
    "BROKER_LOGGER": BROKER_LOGGER_RESOURCE,
    "CLIENT_METRICS": CLIENT_METRICS_RESOURCE,
    "GROUP": GROUP_RESOURCE,
}
_TYPE_NAMES: Final = {number: name for name, number in RESOURCE_TYPES.items()}
#: The type in the sentence about configs without a value.
_KINDS: Final = {TOPIC_RESOURCE: "topic", CLIENT_METRICS_RESOURCE: "client metrics", GROUP_RESOURCE: "group"}


class ConfigResource(NamedTuple):
    """A resource that has configs. The cluster-wide default of brokers is the broker with the name ""."""

    type: int
    name: str

    @property
    def is_one_broker(self) -> bool:
        """Whether it is a broker, and not the default of all."""
        return self.type == BROKER_RESOURCE and self.name != ""


def type_name(resource_type: int) -> str:
    """Kafka's name of a type."""
    return _TYPE_NAMES.get(resource_type, "UNKNOWN")


# --- definitions -------------------------------------------------------------------------------------


def definitions_of(resource_type: int) -> Mapping[str, ConfigDefinition]:
    """The configs that a controller knows by more than their names."""
    if resource_type == TOPIC_RESOURCE:
        return TOPIC_CONFIGS
    if resource_type == GROUP_RESOURCE:
        return GROUP_CONFIGS
    return CLIENT_METRICS_CONFIGS if resource_type == CLIENT_METRICS_RESOURCE else {}


def is_list(resource_type: int, name: str) -> bool:
    """Whether a config can be appended to. Kafka's controllers know lists of topics and brokers only."""
    if resource_type == BROKER_RESOURCE:
        return name in BROKER_LISTS
    definition = TOPIC_CONFIGS.get(name) if resource_type == TOPIC_RESOURCE else None
    return definition is not None and definition.type is ConfigType.LIST


def default_of(resource_type: int, name: str) -> str | None:
    """The value that holds where nobody sets one; None where there is no default, or a controller does not know it."""
    if resource_type == BROKER_RESOURCE:
        return BROKER_LISTS.get(name)
    definition = definitions_of(resource_type).get(name)
    return None if definition is None else definition.default


#: Configs whose values are no secrets: those of brokers that Kafka shows, and all others that a controller knows.
SHOWN_NAMES: Final = ShownNames(
    {
        number: frozenset(BROKER_SHOWN if number == BROKER_RESOURCE else definitions_of(number))
        for number in RESOURCE_TYPES.values()
    }
)


def is_sensitive(resource_type: int, name: str) -> bool:
    """Whether a value may be a secret, which is never shown: so is whatever has a name that nobody knows."""
    return SHOWN_NAMES(resource_type, name)


# --- checks ------------------------------------------------------------------------------------------


def check_configs(resource: ConfigResource, configs: Mapping[str, str | None], present: Mapping[str, str]) -> None:
    """Refuse a resource that cannot be, or configs that it cannot have; whether it exists is another question.

    Args:
        configs: all that it is to have. present: what it has now.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST, INVALID_CONFIG.
    """
    check_resource(resource)
    if resource.type == BROKER_RESOURCE:
        return  # Names and values are the brokers' own affair.
    unset = [name for name, value in configs.items() if value is None]
    if unset:
        raise invalid_config(f"Null value not supported for {_KINDS[resource.type]} configs: {','.join(unset)}")
    values = {name: value for name, value in configs.items() if value is not None}
    if resource.type == TOPIC_RESOURCE:
        check_tiered_storage(check_topic_configs(values), present)
    elif resource.type == GROUP_RESOURCE:
        check_group_configs(values)
    else:
        check_client_metrics_configs(values)


def check_resource(resource: ConfigResource) -> None:
    """Refuse a resource that cannot be.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION, INVALID_REQUEST.
    """
    name = resource.name
    problem: str | None = None
    if resource.type == TOPIC_RESOURCE:
        if name and (topic_problem := name_problem(name)):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, topic_problem)
        problem = None if name else "Default topic resources are not allowed."
    elif resource.is_one_broker:
        node_id = as_whole(name)
        if node_id is None:
            problem = "Unable to parse broker name as a base 10 number."
        elif node_id < 0:
            problem = "Invalid negative broker ID."
    elif resource.type == GROUP_RESOURCE:
        problem = None if name else "Default group resources are not allowed."
    elif resource.type == CLIENT_METRICS_RESOURCE:
        problem = None if name else "Subscription name can't be empty"
    elif resource.type != BROKER_RESOURCE:
        # Loggers of brokers: Kafka's brokers change them in memory, and nothing is in the log.
        problem = f"Unknown resource type {type_name(resource.type)}"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def check_exists(image: MetadataImage, config: ControllerConfig, resource: ConfigResource) -> None:
    """Refuse a resource that is not there; groups and subscriptions need not be known to have configs.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED.
    """
    if resource.type == TOPIC_RESOURCE and resource.name not in image.topics.by_name:
        message = f"The topic '{resource.name}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if resource.is_one_broker:
        node_id = as_whole(resource.name)
        if node_id not in image.cluster.brokers and node_id not in controller_ids(image, config):
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")


def controller_ids(image: MetadataImage, config: ControllerConfig) -> frozenset[int]:
    """All controllers that the log knows, and this one."""
    voters = image.kraft.voters
    ids = () if voters is None else (voter.voter_id for voter in voters.voters)
    return frozenset((config.node_id, *ids, *image.cluster.controllers))
