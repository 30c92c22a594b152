"""Finding many topics' rows: the answers of the sorted column are those of the map."""

from __future__ import annotations

import numpy as np

from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.extents import Extent, ExtentFinder, TopicStretches


def ids(*topics: bytes) -> np.ndarray:
    return np.frombuffer(b"".join(topics), np.uint8).reshape(-1, 16)


#: Topics of three different second halves, two of each, so that one half does not tell them apart.
TOPICS = [half * 8 + bytes([number]) * 8 for number in (3, 1, 2) for half in (b"a", b"b")]
EXTENTS = PersistentMap({topic: Extent(100 * place, 10 + place) for place, topic in enumerate(TOPICS)})


def test_answers_do_not_depend_on_how_often_was_asked() -> None:
    finder = ExtentFinder(EXTENTS)
    column = ids(*[TOPICS[4]] * 3, TOPICS[0], bytes(16), TOPICS[5], TOPICS[1])
    stretches = TopicStretches.of(column)
    expected = [[400, 14], [0, 10], [0, 0], [500, 15], [100, 11]]
    assert [finder.find(stretches).tolist() for _ in range(20)] == [expected] * 20


def test_finder_of_no_topics_finds_none() -> None:
    finder = ExtentFinder(PersistentMap())
    for _ in range(3):
        assert finder.find(TopicStretches.of(ids(TOPICS[0]))).tolist() == [[0, 0]]


def test_rows_are_found_for_numbers_within_the_extent_only() -> None:
    stretches = TopicStretches.of(ids(*[TOPICS[2]] * 4, bytes(16)))
    rows = stretches.find_rows(ExtentFinder(EXTENTS).find(stretches), np.array([0, 11, 12, -1, 0], np.int32))
    assert rows.tolist() == [200, 211, -1, -1, -1]
