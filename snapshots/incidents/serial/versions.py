"""The versions of one partition, in the order of the log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class PartitionVersion(NamedTuple):
    """The state of a partition from one record on."""

    #: From when on it holds; those of a transaction all hold from its end on. The time in microseconds since 1970.
    offset: int
    time_us: int
    #: -1: none.
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]


@dataclass(slots=True)
class PartitionHistory:
    """A partition from its creation, or from when the history begins."""

    topic_id: str
    topic: str
    partition: int
    #: The first version was so in the checkpoint that the history begins with.
    is_base: bool
    #: At least one.
    versions: list[PartitionVersion] = field(default_factory=list)
    #: The topic's removal, its time in microseconds since 1970; None while it lives.
    gone: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.topic}-{self.partition}"


class UntoldRemoval(NamedTuple):
    """Partitions that were removed, and of which there is no more to tell."""

    partitions: int
    #: Of their topic's removal; the time in microseconds since 1970.
    offset: int
    time_us: int


class UntoldPartitions(NamedTuple):
    """Partitions that were well when the history began and that no record is about, but for their topics' removal."""

    partitions: int
    #: Where the history begins; the time in microseconds since 1970.
    offset: int
    time_us: int
    #: What became of some of them.
    removals: Sequence[UntoldRemoval] = ()


NONE_UNTOLD: Final = UntoldPartitions(0, 0, 0)


def stretches_in_which(
    versions: Sequence[PartitionVersion], holds: Callable[[PartitionVersion], bool]
) -> Iterator[tuple[int, int | None]]:
    """The stretches of versions in which something holds: the first, and the one behind the last; None: to the end."""
    first: int | None = None
    for place, version in enumerate(versions):
        if holds(version) != (first is not None):
            if first is None:
                first = place
            else:
                yield first, place
                first = None
    if first is not None:
        yield first, None
