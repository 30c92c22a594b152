"""Configs as they hold: the value that counts, and every place that says something (Kafka's ``KafkaConfigSchema``).

What is set in a broker's own configuration file a controller cannot know; it knows its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from quorate.controller.configs.resources import (
    RESOURCE_TYPES,
    ConfigResource,
    check_exists,
    check_resource,
    default_of,
    definitions_of,
    is_sensitive,
)
from quorate.controller.configs.topic_configs import BROKER_SYNONYMS, TOPIC_CONFIGS
from quorate.controller.configs.values import ConfigDefinition, ConfigType
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.protocol.configs import (
    ConfigSourceName,
    ConfigSynonym,
    CreatedTopicConfig,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribedConfig,
)
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.records.config_texts import as_whole
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE

_OWN_SOURCES: Mapping[int, ConfigSourceName] = {
    TOPIC_RESOURCE: "DYNAMIC_TOPIC_CONFIG",
    GROUP_RESOURCE: "GROUP_CONFIG",
    CLIENT_METRICS_RESOURCE: "CLIENT_METRICS_CONFIG",
}
_BITS = {ConfigType.INT: 32, ConfigType.LONG: 64}


def describe_configs(
    image: MetadataImage, config: ControllerConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe resources, each with its own outcome. Sensitive values are left out, and so is what a name does not tell
    from a sensitive one."""
    return DescribeConfigsResponse(results=[_describe(image, config, named) for named in request.resources])


def configs_of_new_topic(
    image: MetadataImage, config: ControllerConfig, given: Mapping[str, str]
) -> list[CreatedTopicConfig]:
    """All that holds for a topic created with these configs, by name (``computeEffectiveTopicConfigs``)."""
    node, default, static = (tuple(one.items()) for one in _around(image, config, str(config.node_id)))
    inherited = _inherited(node, default, static)
    if not given:
        return list(inherited)
    own = {
        name: CreatedTopicConfig(name=name, value=value, source="DYNAMIC_TOPIC_CONFIG") for name, value in given.items()
    }
    every = {one.name: one for one in inherited} | own
    return [every[name] for name in sorted(every)]


_Configs = tuple[tuple[str, str], ...]


# Kept by value: topics are created by thousands a second, and what stands around them seldom changes.
@lru_cache(maxsize=8)
def _inherited(node: _Configs, default: _Configs, static: _Configs) -> tuple[CreatedTopicConfig, ...]:
    """The values for a topic that has no config of its own, by name; internal ones are for those who set them."""
    around = _Around(dict(node), dict(default), dict(static))
    found: list[CreatedTopicConfig] = []
    for name, definition in sorted(TOPIC_CONFIGS.items()):
        if not definition.is_internal:
            unset: tuple[str, str | None, ConfigSourceName] = (name, definition.default, "DEFAULT_CONFIG")
            _, value, source = next(around.places(BROKER_SYNONYMS.get(name, ()), definition), unset)
            found.append(CreatedTopicConfig(name=name, value=value, source=source))
    return tuple(found)


def _describe(image: MetadataImage, config: ControllerConfig, named: DescribeConfigsResource) -> DescribeConfigsResult:
    resource = ConfigResource(RESOURCE_TYPES[named.resource_type], named.resource_name)
    result = DescribeConfigsResult(resource_type=named.resource_type, resource_name=named.resource_name)
    try:
        check_resource(resource)
        check_exists(image, config, resource)
    except ApiError as error:
        return result.model_copy(update={"error_code": error.code, "error_message": error.message})
    wanted = None if named.configuration_keys is None else frozenset(named.configuration_keys)
    names = sorted(name for name in _names(image, config, resource) if wanted is None or name in wanted)
    return result.model_copy(update={"configs": [_config(image, config, resource, name) for name in names]})


def _names(image: MetadataImage, config: ControllerConfig, resource: ConfigResource) -> frozenset[str]:
    shown = [name for name, known in definitions_of(resource.type).items() if not known.is_internal]
    names = frozenset((*shown, *image.configs.of(*resource)))
    if resource.is_one_broker:
        names = names.union(image.configs.of(BROKER_RESOURCE, ""))
        if as_whole(resource.name) == config.node_id:
            names = names.union(config.static_configs)
    return names


def _config(image: MetadataImage, config: ControllerConfig, resource: ConfigResource, name: str) -> DescribedConfig:
    definition = definitions_of(resource.type).get(name)
    places = list(_places(image, config, resource, name, definition))
    is_hidden = is_sensitive(resource.type, name)
    synonyms = [
        ConfigSynonym(name=at, value=None if is_hidden else value, source=source) for at, value, source in places
    ]
    return DescribedConfig(
        name=name,
        value=synonyms[0].value if synonyms else None,
        source=synonyms[0].source if synonyms else "DEFAULT_CONFIG",
        is_sensitive=is_hidden,
        config_type=None if definition is None else definition.type.value,
        synonyms=synonyms,
    )


#: Name there, value and kind of a place that sets a config.
_Place = tuple[str, str, ConfigSourceName]
#: Configs that stand in for another, with what their number is multiplied.
_Synonyms = tuple[tuple[str, int], ...]


class _Around(NamedTuple):
    """The values that hold where a resource has none of its own."""

    #: Of one broker, of the default of all, of this process's settings.
    node: Mapping[str, str]
    default: Mapping[str, str]
    static: Mapping[str, str]

    def places(self, synonyms: _Synonyms, definition: ConfigDefinition | None) -> Iterator[_Place]:
        """Every place that sets one of some configs, the one that counts first."""
        yield from _set_at(self.node, synonyms, definition, "DYNAMIC_BROKER_CONFIG")
        yield from _set_at(self.default, synonyms, definition, "DYNAMIC_DEFAULT_BROKER_CONFIG")
        yield from _set_at(self.static, synonyms, definition, "STATIC_BROKER_CONFIG")


def _around(image: MetadataImage, config: ControllerConfig, node: str) -> _Around:
    """The values that a node goes by; "": those that all do. The settings of other processes nobody here knows."""
    return _Around(
        image.configs.of(BROKER_RESOURCE, node) if node else {},
        image.configs.of(BROKER_RESOURCE, ""),
        config.static_configs if node and as_whole(node) == config.node_id else {},
    )


def _places(
    image: MetadataImage,
    config: ControllerConfig,
    resource: ConfigResource,
    name: str,
    definition: ConfigDefinition | None,
) -> Iterator[_Place]:
    """Every place that sets a config, the one that counts first."""
    if resource.type == BROKER_RESOURCE:
        yield from _around(image, config, resource.name).places(((name, 1),), definition)
    else:
        own = image.configs.of(*resource).get(name)
        if own is not None:
            yield name, own, _OWN_SOURCES[resource.type]
        node = str(config.node_id)
        yield from _around(image, config, node).places(_synonyms(resource.type, name), definition)
    default = default_of(resource.type, name)
    if default is not None:
        yield name, default, "DEFAULT_CONFIG"


def _synonyms(resource_type: int, name: str) -> _Synonyms:
    """Broker configs that stand in for another resource's, with what their number is multiplied."""
    if resource_type == TOPIC_RESOURCE:
        return BROKER_SYNONYMS.get(name, ())
    # The broker's config of a group's has its name behind "group."; a few have none, and then nobody sets it.
    return ((f"group.{name}", 1),) if resource_type == GROUP_RESOURCE else ()


def _set_at(
    configs: Mapping[str, str],
    synonyms: _Synonyms,
    definition: ConfigDefinition | None,
    source: ConfigSourceName,
) -> Iterator[_Place]:
    for name, factor in synonyms:
        value = configs.get(name)
        if value is None:
            continue
        bits = None if definition is None else _BITS.get(definition.type)
        if bits is None:
            yield name, value, source
            continue
        # Nobody checked a broker's config: one that is no number counts as none, here as in decisions.
        number = as_whole(value.strip(), bits)
        if number is not None:
            yield name, str(number * factor) if factor != 1 else value, source
