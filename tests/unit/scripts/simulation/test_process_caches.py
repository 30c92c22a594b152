"""What patched code answered is in no cache afterwards, and what others were answered before in none that it meets."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from quorate.controller.configs import description
from quorate.controller.partitions import broker_columns
from quorate.controller.topics import name_collisions
from quorate.metadata_log.records import codec, json_form
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import NoOpRecord
from quorate.scripts.simulation.quorum.patches import patched
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table import pages
from tests.guards.patching import patching
from tests.unit.controller.small_cluster import SmallCluster

NOTHING_SET = ((), (), ())


def fill() -> MetadataImage:
    """Have one cache of each kind remember something; what the image is that it was asked about."""
    cluster = SmallCluster()
    description._inherited(*NOTHING_SET)
    broker_columns.broker_columns(cluster.image)
    encode_value(NoOpRecord(), 0)
    return cluster.image


def remembering() -> list[str]:
    """The caches that are not empty."""
    kept = {
        "functools": bool(description._inherited.cache_info().currsize),
        "object": broker_columns._NEWEST._made is not None,
        "dictionary": bool(codec._WRITERS),
    }
    return [name for name, is_filled in kept.items() if is_filled]


EVERY = ["functools", "object", "dictionary"]


@pytest.fixture
def _full_before_and_empty_behind() -> Iterator[None]:
    """Around ``monkeypatch``, which is asked for after it."""
    fill()
    assert remembering() == EVERY
    yield
    assert remembering() == []


@pytest.mark.usefixtures("_full_before_and_empty_behind")
def test_fixture_that_patches_has_empty_caches_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert remembering() == []
    monkeypatch.setattr(description, "TOPIC_CONFIGS", {})
    fill()
    assert remembering() == EVERY


def test_answer_of_patched_code_is_given_to_nobody_else() -> None:
    usual = description._inherited(*NOTHING_SET)
    with patching() as patch:
        patch.setattr(description, "TOPIC_CONFIGS", {})
        assert description._inherited(*NOTHING_SET) == ()
    assert description._inherited(*NOTHING_SET) == usual != ()


def test_answer_of_a_mutation_is_given_to_nobody_else() -> None:
    usual = description._inherited(*NOTHING_SET)
    with patched([(description, "TOPIC_CONFIGS", {})]):
        assert description._inherited(*NOTHING_SET) == ()
    assert description._inherited(*NOTHING_SET) == usual


def test_cache_that_is_replaced_itself_is_emptied_once_it_is_back() -> None:
    with patching() as patch:
        fill()
        patch.setattr(description, "_inherited", functools.cache(lambda *_: ()))
    assert remembering() == []


def test_memos_work_after_they_were_emptied() -> None:
    with patching():
        image = fill()
    assert broker_columns.broker_columns(image).active_ids.tolist() == sorted(image.cluster.brokers)
    assert name_collisions.colliding_topic(image.topics.by_name, "a.b") is None
    assert codec.decode_value(encode_value(NoOpRecord(), 0)).record == NoOpRecord()


def test_blank_columns_stay_the_ones_that_pages_know() -> None:
    blank = pages.blank_column("elr", 4)
    with patching():
        json_form._uuid_text(bytes(16))
    assert pages.blank_column("elr", 4) is blank
    assert json_form._uuid_text.cache_info().currsize == 0
