"""Decisions that take a broker out of, or back into, any number of partitions: all at once, or as slices of a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Slice
from quorate.controller.decisions.record_slices import ROWS_PER_SLICE_MAX
from quorate.controller.partitions.elections import Rows, leader_and_isr_changes
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.snapshots.image.image import MetadataImage


@dataclass(frozen=True, slots=True)
class IsrChanges:
    """``leader_and_isr_changes`` that are still to be decided; see there."""

    #: Ascending.
    rows: Rows
    broker_to_remove: int | None = None
    broker_to_add: int | None = None
    is_unclean_shutdown: bool = False

    def decide(self, image: MetadataImage, config: ControllerConfig) -> list[PartitionChangeRun]:
        """The records, decided on this image."""
        return leader_and_isr_changes(
            image,
            config,
            self.rows,
            broker_to_remove=self.broker_to_remove,
            broker_to_add=self.broker_to_add,
            is_unclean_shutdown=self.is_unclean_shutdown,
        )

    def cut(self, rows_max: int) -> Iterator[IsrChanges]:
        """The same in parts of so many rows."""
        for first in range(0, len(self.rows), rows_max):
            yield replace(self, rows=self.rows[first : first + rows_max])


#: What a decision is put together from.
Part = BatchItem | IsrChanges


def records_or_slices(
    image: MetadataImage, config: ControllerConfig, parts: Sequence[Part]
) -> tuple[list[BatchItem], list[Slice]]:
    """``records`` and ``slices`` of a decision, in the order of its parts; slices if more change than fit one turn."""
    if sum(len(part.rows) for part in parts if isinstance(part, IsrChanges)) <= ROWS_PER_SLICE_MAX:
        return _decided(image, config, parts), []
    extents = image.partitions.extents

    def slice_of(some: Sequence[Part]) -> Slice:
        def decide(head: MetadataImage) -> Sequence[BatchItem]:
            # Rows mean the same partitions as long as no topic has come, gone or grown since they were found.
            assert head.partitions.extents is extents, "something else was decided during a pass"
            return _decided(head, config, some)

        return decide

    return [], [slice_of(some) for some in _grouped(parts)]


def _decided(image: MetadataImage, config: ControllerConfig, parts: Iterable[Part]) -> list[BatchItem]:
    items: list[BatchItem] = []
    for part in parts:
        items += part.decide(image, config) if isinstance(part, IsrChanges) else [part]
    return items


def _grouped(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts in order, so that no group changes more partitions than a slice may."""
    groups: list[list[Part]] = [[]]
    for part in parts:
        if not isinstance(part, IsrChanges):
            groups[-1].append(part)
            continue
        for some in part.cut(ROWS_PER_SLICE_MAX):
            if any(isinstance(other, IsrChanges) for other in groups[-1]):
                groups.append([])
            groups[-1].append(some)
    return groups
