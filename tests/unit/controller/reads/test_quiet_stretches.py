"""The stretches of the log in which nothing became of brokers, and reading that leaves them out."""

from __future__ import annotations

import random

import pytest

from quorate.controller.reads.quiet_stretches import STRETCHES_MAX, QuietStretches
from quorate.metadata_log.records.records import Record, TopicRecord, VersionedRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from tests.unit.controller.reads.test_absences import FENCED, GONE, REGISTERED, UNFENCED
from tests.unit.controller.reads.test_broker_absences import Log, of


def topic(number: int) -> TopicRecord:
    return TopicRecord(name=f"t{number}", topic_id=bytes(12) + number.to_bytes(4, "big"))


def states(records: tuple[Record, ...]) -> list[MetadataImage]:
    """Those behind 0, 1, 2, ... records."""
    made = [EMPTY_IMAGE]
    for offset, record in enumerate(records):
        version = 0 if isinstance(record, TopicRecord) else 2
        made.append(replay(made[-1], [VersionedRecord(record, version)], Provenance(offset, 1, 0)))
    return made


def noted(images: list[MetadataImage]) -> QuietStretches:
    quiet = QuietStretches()
    for image in images:
        quiet.note(image)
    return quiet


def test_stretches_end_where_something_became_of_a_broker() -> None:
    images = states((REGISTERED, topic(1), topic(2), UNFENCED, topic(3)))
    assert [noted(images).behind(offset) for offset in (*range(6), 9)] == [0, 3, 3, 3, 5, 5, 9]
    assert [noted(images[2:]).behind(offset) for offset in range(6)] == [0, 1, 3, 3, 5, 5]


def test_log_that_goes_back_is_another_one() -> None:
    images = states((REGISTERED, topic(1), topic(2)))
    quiet = noted(images)
    quiet.note(images[2])
    assert [quiet.behind(offset) for offset in range(4)] == [0, 1, 2, 3]
    quiet.note(images[3])
    assert [quiet.behind(offset) for offset in range(4)] == [0, 1, 3, 3]


def test_oldest_stretches_are_forgotten() -> None:
    records = tuple(one for number in range(STRETCHES_MAX + 1) for one in (REGISTERED, topic(number)))
    quiet = noted(states(records))
    assert [quiet.behind(offset) for offset in (1, 3, 2 * STRETCHES_MAX + 1)] == [1, 4, 2 * STRETCHES_MAX + 2]


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_left_out_would_have_told_nothing(seed: int) -> None:
    draw = random.Random(seed)
    brokers = (REGISTERED, UNFENCED, FENCED)
    records = (REGISTERED, *(draw.choice((topic(n), topic(n + 100), *brokers)) for n in range(1, 30)), GONE)
    source, whole = Log(records), Log(records)
    images, first = states(records), draw.randrange(10)
    absences, judge = of(source, noted(images[first:])), of(whole)
    for offset in (draw.randrange(len(records) + 1), len(records), draw.randrange(len(records) + 1)):
        assert await absences.at(offset) == await judge.at(offset)
    left_out = [number for number, record in enumerate(records) if isinstance(record, TopicRecord) and number >= first]
    assert not set(source.read) & set(left_out)
