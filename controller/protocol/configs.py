"""Configs: incremental changes, full replacement, description (Kafka's APIs 44, 33, 32)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from quorate.controller.protocol.types import ITEMS_MAX, ItemResult, Message, SecretMessage, Text

ResourceTypeName = Literal["TOPIC", "BROKER", "BROKER_LOGGER", "CLIENT_METRICS", "GROUP"]
#: Where a value comes from, with Kafka's names (``ConfigSource``).
ConfigSourceName = Literal[
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "CLIENT_METRICS_CONFIG",
    "GROUP_CONFIG",
]
#: In one resource.
_CONFIGS_MAX = 1_000


class ResourceName(Message):
    """The name of a resource that has configs. The broker with the name "" is the default of all brokers."""

    resource_type: ResourceTypeName
    resource_name: Text


class AlterableConfig(SecretMessage):
    """One change of one config."""

    name: Text
    #: APPEND and SUBTRACT are for lists: items, between commas.
    config_operation: Literal["SET", "DELETE", "APPEND", "SUBTRACT"] = "SET"
    value: Text | None = None


class AlterConfigsResource(ResourceName, SecretMessage):
    """Changes of one resource: all of them, or none."""

    configs: Annotated[list[AlterableConfig], Field(max_length=_CONFIGS_MAX)]


class IncrementalAlterConfigsRequest(SecretMessage):
    """Changes, resource by resource; each may fail for itself."""

    resources: Annotated[list[AlterConfigsResource], Field(max_length=ITEMS_MAX)]
    #: Answer as if, and write nothing.
    validate_only: bool = False


class ConfigValue(SecretMessage):
    """One config of a resource."""

    name: Text
    value: Text | None = None


class ReplacedConfigsResource(ResourceName, SecretMessage):
    """All configs that one resource is to have: what is not named is removed."""

    configs: Annotated[list[ConfigValue], Field(max_length=_CONFIGS_MAX)]


class AlterConfigsRequest(SecretMessage):
    """Full replacement, resource by resource; each may fail for itself."""

    resources: Annotated[list[ReplacedConfigsResource], Field(max_length=ITEMS_MAX)]
    validate_only: bool = False


class AlterConfigsResourceResult(ItemResult):
    """Whether a resource was changed."""

    resource_type: ResourceTypeName
    resource_name: str


class AlterConfigsResponse(Message):
    """Of either request, in its order."""

    responses: list[AlterConfigsResourceResult]


class DescribeConfigsResource(ResourceName):
    """A resource, and which of its configs are wanted."""

    #: None = all.
    configuration_keys: Annotated[list[Text], Field(max_length=_CONFIGS_MAX)] | None = None


class DescribeConfigsRequest(Message):
    """Resources to describe."""

    resources: Annotated[list[DescribeConfigsResource], Field(max_length=ITEMS_MAX)]


class ConfigSynonym(Message):
    """A place where a config could come from, and what it says there."""

    name: str
    #: None where the value is sensitive.
    value: str | None
    source: ConfigSourceName


class DescribedConfig(Message):
    """A config as it holds."""

    name: str
    #: None where it is sensitive, or nothing is set and there is no default.
    value: str | None
    source: ConfigSourceName
    is_sensitive: bool
    #: None for configs that a controller knows by name only.
    config_type: Literal["BOOLEAN", "INT", "LONG", "DOUBLE", "STRING", "LIST", "PASSWORD"] | None
    #: All places that say something, the one that counts first.
    synonyms: list[ConfigSynonym]


class CreatedTopicConfig(Message):
    """A config as it holds for a topic that was created."""

    name: str
    #: None where nothing is set and there is no default.
    value: str | None
    source: ConfigSourceName
    is_sensitive: bool = False
    #: Never, as in Kafka: every config of a topic can be altered.
    read_only: bool = False


class DescribeConfigsResult(ItemResult):
    """One resource."""

    resource_type: ResourceTypeName
    resource_name: str
    configs: list[DescribedConfig] = Field(default_factory=list)


class DescribeConfigsResponse(Message):
    """In the order of the request."""

    results: list[DescribeConfigsResult]
