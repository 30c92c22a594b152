"""The kinds of things compared, their keys, and the fields that mean nothing between two clusters. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One table of a state.

    Attributes:
        key: columns that say which row is which. by_id: the same where clusters are matched by topic id.
        sets: list columns whose order means nothing.
        own: columns that every cluster makes up for itself: ids, epochs.
    """

    name: str
    key: tuple[str, ...]
    by_id: tuple[str, ...]
    sets: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()


#: The kind of which some values may be secrets.
CONFIGS: Final = "configs"

KINDS: Final = (
    Kind("topics", ("topic",), ("topic_id",), own=frozenset({"topic_id"})),
    Kind(
        "partitions",
        ("topic", "partition"),
        ("topic_id", "partition"),
        sets=frozenset({"isr", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr"}),
        own=frozenset({"topic_id", "leader_epoch", "partition_epoch", "directories"}),
    ),
    Kind(
        "brokers",
        ("broker_id",),
        ("broker_id",),
        sets=frozenset({"log_dirs", "cordoned_log_dirs", "features"}),
        own=frozenset({"broker_epoch", "incarnation_id", "log_dirs", "cordoned_log_dirs"}),
    ),
    Kind(CONFIGS, ("resource_type", "resource", "name"), ("resource_type", "resource", "name")),
)

#: Says whose row it is, never what it says.
ANYWHERE: Final = frozenset({"cluster_id"})


def key_of(kind: Kind, *, match_ids: bool) -> tuple[str, ...]:
    """The columns that two rows of one thing share."""
    return kind.by_id if match_ids else kind.key


def fields_of(kind: Kind, columns: list[str], *, match_ids: bool, same_cluster: bool) -> list[str]:
    """The columns to compare, in the table's order.

    Matched by name, two clusters' ids and epochs are left out; a cluster compared with itself has all of them.
    """
    left_out = ANYWHERE | set(key_of(kind, match_ids=match_ids))
    if not (match_ids or same_cluster):
        left_out |= kind.own
    return [column for column in columns if column not in left_out]
