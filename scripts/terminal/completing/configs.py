"""The names of configs that are known, by the kind of resource that has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from quorate.controller.configs.broker_configs import BROKER_SHOWN
from quorate.controller.configs.group_configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from quorate.controller.configs.topic_configs import TOPIC_CONFIGS

_NAMES: Final[Mapping[str, Collection[str]]] = {
    "topic": TOPIC_CONFIGS,
    "broker": BROKER_SHOWN,
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}


def known_names(kind: str) -> Collection[str]:
    """Of `topic`, `broker`, `group` or `client-metrics`; none of anything else."""
    return _NAMES.get(kind, ())
