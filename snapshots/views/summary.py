"""An image in a few numbers: what an operator asks first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.page_access import holds_partition, is_led_by_preferred, is_reassigning
from quorate.snapshots.table.pages import NO_BROKER, AnyColumn, Page
from quorate.snapshots.table.partition import RECOVERING


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The numbers of partitions that name a broker."""

    replicas: int
    in_sync: int
    leaders: int


@dataclass(frozen=True, slots=True)
class ImageSummary:
    """Counts over all partitions."""

    partitions: int
    without_leader: int
    #: The ISR is smaller than the replica list.
    under_replicated: int
    with_elr: int
    recovering: int
    reassigning: int
    #: Led, but not by the first replica.
    not_preferred: int
    #: By broker id; brokers that are only mentioned, never registered, too.
    brokers: dict[int, BrokerLoad]


def summarize(image: MetadataImage) -> ImageSummary:
    """Count, page by page."""
    counts: Counter[str] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    for page in image.partitions.pages:
        if page.is_blank:
            continue
        counts.update(_page_counts(page))
        for slot, brokers in enumerate(page.slots):
            _count(replicas, brokers[page.replica_counts > slot])
            _count(in_sync, brokers[(page.isr >> page.isr.dtype.type(slot)) & 1 != 0])
            _count(leaders, brokers[page.leader_slots == slot])
    mentioned = sorted({*replicas, *in_sync, *leaders, *image.cluster.brokers})
    return ImageSummary(
        partitions=len(image.partitions),
        **{name: counts[name] for name in _page_counts(Page.blank(1))},
        brokers={id_: BrokerLoad(replicas[id_], in_sync[id_], leaders[id_]) for id_ in mentioned},
    )


def _page_counts(page: Page) -> dict[str, int]:
    conditions: dict[str, AnyColumn] = {
        "without_leader": holds_partition(page) & (page.leader_slots < 0),
        "under_replicated": np.bitwise_count(page.isr) < page.replica_counts,
        "with_elr": page.elr != 0,
        "recovering": page.recovery_states == RECOVERING,
        "reassigning": is_reassigning(page),
        "not_preferred": (page.leader_slots >= 0) & ~is_led_by_preferred(page),
    }
    return {name: int(condition.sum()) for name, condition in conditions.items()}


def _count(counter: Counter[int], brokers: AnyColumn) -> None:
    ordered = np.sort(brokers[brokers != NO_BROKER])
    ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered)) if len(ordered) else np.empty(0, np.int64)
    for end, number in zip(ends.tolist(), np.diff(ends, prepend=0).tolist(), strict=True):
        counter[int(ordered[end - 1])] += number
