"""Configs as they hold: the value that counts, and every place that says something (Kafka's ``KafkaConfigSchema``).

What is set in a broker's own configuration file a controller cannot know; it knows its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.config_resources import (
    RESOURCE_TYPES,
    ConfigResource,
    check_exists,
    check_resource,
    default_of,
    definitions_of,
    is_sensitive,
)
from controller.config_values import ConfigDefinition, ConfigType, as_whole
from controller.controller_config import ControllerConfig
from controller.protocol_configs import (
    ConfigSourceName,
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribedConfig,
)
from controller.topic_configs import BROKER_SYNONYMS
from metadata_log.errors import ApiError
from snapshots.image import MetadataImage
from snapshots.image_parts import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE

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


_Place = tuple[str, str, ConfigSourceName]


def _places(
    image: MetadataImage,
    config: ControllerConfig,
    resource: ConfigResource,
    name: str,
    definition: ConfigDefinition | None,
) -> Iterator[_Place]:
    """Name there, value and kind of every place that sets a config, the one that counts first."""
    node = str(config.node_id)
    own = image.configs.of(*resource).get(name)
    if resource.type == BROKER_RESOURCE:
        synonyms: tuple[tuple[str, int], ...] = ((name, 1),)
        node = resource.name
    else:
        if own is not None:
            yield name, own, _OWN_SOURCES[resource.type]
        synonyms = _synonyms(resource.type, name)
    if node:
        yield from _set_at(image.configs.of(BROKER_RESOURCE, node), synonyms, definition, "DYNAMIC_BROKER_CONFIG")
    yield from _set_at(image.configs.of(BROKER_RESOURCE, ""), synonyms, definition, "DYNAMIC_DEFAULT_BROKER_CONFIG")
    if node and as_whole(node) == config.node_id:
        yield from _set_at(config.static_configs, synonyms, definition, "STATIC_BROKER_CONFIG")
    default = default_of(resource.type, name)
    if default is not None:
        yield name, default, "DEFAULT_CONFIG"


def _synonyms(resource_type: int, name: str) -> tuple[tuple[str, int], ...]:
    """Broker configs that stand in for another resource's, with what their number is multiplied."""
    if resource_type == TOPIC_RESOURCE:
        return BROKER_SYNONYMS.get(name, ())
    # The broker's config of a group's has its name behind "group."; a few have none, and then nobody sets it.
    return ((f"group.{name}", 1),) if resource_type == GROUP_RESOURCE else ()


def _set_at(
    configs: Mapping[str, str],
    synonyms: tuple[tuple[str, int], ...],
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
