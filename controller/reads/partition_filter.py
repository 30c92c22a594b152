"""The criteria of a search for partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quorate.controller.reads.name_patterns import NamePatterns

#: ``controller.reads.partition_conditions`` says when a partition is in one.
Condition = Literal["offline", "under-replicated", "under-min-isr", "at-min-isr", "not-preferred", "reassigning"]


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Partitions for which all of it holds."""

    names: NamePatterns
    #: In one of these; empty: in any state.
    conditions: tuple[Condition, ...] = ()
    #: With this broker among the replicas.
    replica: int | None = None
    #: Led by this broker.
    leader: int | None = None

    @property
    def is_about_partitions(self) -> bool:
        """Whether a partition's state matters, and not only its topic's name."""
        return bool(self.conditions) or self.replica is not None or self.leader is not None
