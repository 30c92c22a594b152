"""Broker configs that Kafka's brokers refuse before a controller is asked (``ConfigAdminManager``): wrong types.

The controller itself takes every name and value, here as there, so this is done at the edge. Names that nobody knows
are allowed. Checked is what has a type that is known here: configs that stand in for topics', and counts of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from quorate.controller.configs.topic_configs import BROKER_SYNONYMS, MIN_ISR_CONFIG, TOPIC_CONFIGS
from quorate.controller.configs.values import ConfigDefinition, ConfigType, within
from quorate.controller.protocol.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResult,
    AlterConfigsResponse,
    ReplacedConfigsResource,
)
from quorate.controller.protocol.outcomes import in_their_places
from quorate.metadata_log.errors import ApiError, ErrorCode

R = TypeVar("R", AlterConfigsResource, ReplacedConfigsResource)

_PLAIN: Final = (ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE)
#: Threads that a broker starts and ends while it runs.
_THREADS: Final = (
    "background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads",
    "num.recovery.threads.per.data.dir", "num.replica.fetchers",
)  # fmt: skip


def _known() -> dict[str, ConfigDefinition]:
    known = {name: ConfigDefinition(name, ConfigType.INT, None, within(1)) for name in _THREADS}
    for topic_config, synonyms in BROKER_SYNONYMS.items():
        type_ = TOPIC_CONFIGS[topic_config].type
        for name, factor in synonyms:
            # Hours and minutes are whole numbers, whatever the milliseconds are.
            known[name] = ConfigDefinition(name, ConfigType.INT if factor != 1 else type_, None)
    known[MIN_ISR_CONFIG] = ConfigDefinition(MIN_ISR_CONFIG, ConfigType.INT, None, within(1))
    return {name: one for name, one in known.items() if one.type in _PLAIN}


_KNOWN: Final[Mapping[str, ConfigDefinition]] = _known()


def refused_by_brokers(resources: Sequence[R]) -> dict[int, AlterConfigsResourceResult]:
    """The outcome of each resource, by its place, that a broker refuses: as Kafka's, INVALID_REQUEST."""
    refused = {}
    for place, resource in enumerate(resources):
        problem = _problem(resource)
        if problem is not None:
            refused[place] = AlterConfigsResourceResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=problem,
            )
    return refused


def with_refused(
    answered: Iterable[AlterConfigsResourceResult], refused: Mapping[int, AlterConfigsResourceResult]
) -> AlterConfigsResponse:
    """All outcomes in the order of the request: ``answered`` are those of the resources that are not refused."""
    return AlterConfigsResponse(responses=in_their_places(answered, refused))


def _problem(resource: AlterConfigsResource | ReplacedConfigsResource) -> str | None:
    if resource.resource_type != "BROKER":
        return None
    for config in resource.configs:
        definition = _KNOWN.get(config.name)
        if definition is None or config.value is None:
            continue  # Appending to what is no list the controller refuses.
        try:
            definition.parse(config.value)
        except ApiError as error:
            return error.message
    return None
