"""Labels: small values that programs of users keep in the metadata, and the records that carry them in the log.

Apache Kafka has no record for them. What carries one is the config of a broker that cannot exist: ``ConfigRecord`` of a
broker with a negative id. Kafka's controllers refuse to write such a config, so none of another meaning is in any log;
they replay it and write it into their snapshots like any broker's, and no broker acts upon it. The configs of topics,
groups and subscriptions, and those of unknown kinds, are dropped at replay where Kafka does not know their names
(``DefaultSupportedConfigChecker``).

    resource_type BROKER, resource_name "-108331", name "label/topic:orders/acme/schema", value "7"

A label's resource decides which of the brokers carries it, so that none carries many: whoever follows the log as Kafka
does copies all configs of a broker when one changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple
from zlib import crc32

from quorate.snapshots.image.image_parts import BROKER_RESOURCE
from quorate.snapshots.maps.persistent_map import PersistentMap

_PREFIX: Final = "label/"
#: The carriers' ids are -65,536 and the 65,535 below it: far from -1, by which Kafka means no broker.
_CARRIERS: Final = 1 << 16

_NOTHING: Final[MappingProxyType[str, str]] = MappingProxyType({})


class Label(NamedTuple):
    """A labelled thing, and the key of the label."""

    #: ``cluster``, ``topic:orders``, ``partition:orders-17``, ``broker:3``, ``record:routing``.
    resource: str
    #: ``NAMESPACE/NAME``.
    key: str


@dataclass(frozen=True, slots=True)
class LabelsImage:
    """Labels of all resources."""

    #: Resource -> its values by key; a resource without labels is absent.
    resources: PersistentMap[str, MappingProxyType[str, str]] = field(default_factory=PersistentMap)
    #: Labels of all resources together.
    count: int = 0

    def of(self, resource: str) -> MappingProxyType[str, str]:
        """The labels of one resource, by key."""
        return self.resources.get(resource, _NOTHING) or _NOTHING


def config_of(label: Label) -> tuple[int, str, str]:
    """Resource type, resource name and name of the config that carries a label."""
    return BROKER_RESOURCE, _carrier(label.resource), f"{_PREFIX}{label.resource}/{label.key}"


def label_of(resource_type: int, resource_name: str, name: str) -> Label | None:
    """The label that a config carries; None where it is a config like others."""
    if resource_type != BROKER_RESOURCE or resource_name[:1] != "-" or not name.startswith(_PREFIX):
        return None
    resource, _, key = name[len(_PREFIX) :].partition("/")
    # What stands elsewhere is not ours, and stays what it is: a label has one place.
    return Label(resource, key) if resource_name == _carrier(resource) else None


def _carrier(resource: str) -> str:
    return str(-_CARRIERS - crc32(resource.encode()) % _CARRIERS)
