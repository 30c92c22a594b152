"""ISR books of small images, what is noted in them, and what they would ask for."""

from collections.abc import Iterable

import numpy as np

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.replicas.isr_book import IsrBook
from quorate.broker.replicas.led_rows import ALWAYS
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import MetadataImage
from tests.unit.broker.images import uuid

ALL = frozenset({1, 2, 3})
LAG_MAX_MS = 1_000.0
#: Partition (topic id, number) -> members of the ISR asked for, with their broker epochs.
Asked = dict[tuple[bytes, int], tuple[tuple[int, int], ...]]


def proposed(
    model: IsrBook, now_ms: float, busy: frozenset[int] = frozenset(), rows_max: int = 100
) -> dict[int, Asked]:
    """What each leader would ask for."""
    asked = {}
    for proposals in model.due(now_ms, busy, rows_max):
        asked[proposals.leader] = as_dict(proposals)
    return asked


def as_dict(proposals: IsrProposals) -> Asked:
    return {
        (topic.tobytes(), number): tuple(
            (id_, epoch) for id_, epoch in zip(isr, epochs, strict=True) if id_ != NO_MEMBER
        )
        for topic, number, isr, epochs in zip(
            proposals.topic_ids,
            proposals.partition_ids.tolist(),
            proposals.isr.tolist(),
            proposals.isr_broker_epochs.tolist(),
            strict=True,
        )
    }


def book_of(image: MetadataImage, leaders: frozenset[int] = ALL, *, trusts_isr: bool = False) -> IsrBook:
    book = IsrBook(LAG_MAX_MS, trusts_isr=trusts_isr)
    book.update(image, leaders, now_ms=0.0)
    return book


def note(
    book: IsrBook,
    topic: int,
    numbers: Iterable[int],
    broker: int,
    caught_up_ms: float = ALWAYS,
    leader_epoch: int = 0,
    *,
    is_member: bool = False,
) -> list[ErrorCode]:
    """Say the same of a broker's replicas in some partitions of a topic."""
    ids = list(numbers)
    codes = book.note(
        np.frombuffer(uuid(topic) * len(ids), np.uint8).reshape(-1, 16),
        np.array(ids, np.int32),
        np.full(len(ids), leader_epoch, np.int32),
        np.full(len(ids), broker, np.int32),
        np.full(len(ids), caught_up_ms),
        np.full(len(ids), is_member),
    )
    return [ErrorCode(code) for code in codes.tolist()]


def told(image: MetadataImage, leaders: frozenset[int] = ALL) -> IsrBook:
    """A book in which every follower was said to have all."""
    book = book_of(image, leaders)
    for topic in image.topics.by_id:
        for number, state in image.partitions.partitions_of(topic):
            for replica in state.replicas:
                if replica != state.leader:
                    note(book, int.from_bytes(topic, "big") - 1000, [number], replica, leader_epoch=state.leader_epoch)
    return book
