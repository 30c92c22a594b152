"""Finding many topics' rows: every stretch of a column of topics, also of topics that are not there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.extents import Extent, TopicStretches, extent_column
from quorate.snapshots.table.partition_table import PartitionTable

TOPICS = [bytes([number]) * 16 for number in range(1, 7)]
EXTENTS = PersistentMap({topic: Extent(100 * place, 10 + place) for place, topic in enumerate(TOPICS)})


def ids(*topics: bytes) -> np.ndarray:
    return np.frombuffer(b"".join(topics), np.uint8).reshape(-1, 16)


def test_each_stretch_has_the_extent_of_its_topic() -> None:
    stretches = TopicStretches.of(ids(*[TOPICS[4]] * 3, TOPICS[0], bytes(16), TOPICS[5], TOPICS[1]))
    column = extent_column(EXTENTS.get_many(stretches.topics))
    assert column.tolist() == [[400, 14], [0, 10], [0, 0], [500, 15], [100, 11]]


def test_rows_are_found_for_numbers_within_the_extent_only() -> None:
    stretches = TopicStretches.of(ids(*[TOPICS[2]] * 4, bytes(16)))
    column = extent_column(EXTENTS.get_many(stretches.topics))
    assert stretches.find_rows(column, np.array([0, 11, 12, -1, 0], np.int32)).tolist() == [200, 211, -1, -1, -1]


class CountedMap(PersistentMap[Uuid, Extent]):
    """Counts the topics that are looked up."""

    looked_up = 0

    def get_many(self, keys: Iterable[Uuid]) -> list[Extent | None]:
        wanted = list(keys)
        self.looked_up += len(wanted)
        return super().get_many(wanted)

    def __iter__(self):  # type: ignore[no-untyped-def]
        raise AssertionError("all topics are walked over for a few")


def test_as_many_topics_are_looked_up_as_are_asked_for_however_often() -> None:
    extents = CountedMap({bytes([1, *number.to_bytes(3, "big")]) * 4: Extent(number, 1) for number in range(1_000)})
    table = PartitionTable(extents=extents)

    for _ in range(50):
        backwards = ids(*[bytes([1, 0, 0, number]) * 4 for number in reversed(range(40))])
        table.reserved_rows_for(backwards, np.zeros(40, np.int32))

    assert extents.looked_up == 50 * 40
