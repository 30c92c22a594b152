"""Replay held against a naive model, columns against rows, prefixes against the whole."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.batches.builder import build_batches
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.records.records import VersionedRecord
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.digest import canonical_value
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from tests.record_stream import EXAMPLES, RecordStream, as_runs, versioned

#: A seed, not a stream of choices: streams are long, and what fails prints the seed that makes it again.
seeds = st.integers(0, 2**32 - 1)


def stream(seed: int, operations: int = 15) -> tuple[RecordStream, list[Any]]:
    """A stream that has made some operations, and their records."""
    made = RecordStream(Random(seed))
    return made, made.records(operations)


def one_by_one(records: list[Any]) -> MetadataImage:
    """The image by the row path."""
    return replay(EMPTY_IMAGE, [versioned(record) for record in records])


def state_of(image: MetadataImage) -> list[bytes]:
    """What an image says, in a form that has no order."""
    return sorted(canonical_value(record) for record, _ in image_records(image))


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_replay_of_any_stream_equals_naive_model(seed: int) -> None:
    made, records = stream(seed)

    assert state_of(one_by_one(records)) == sorted(canonical_value(record) for record in made.model.records())


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_replay_of_runs_equals_replay_of_rows(seed: int) -> None:
    _, records = stream(seed)

    assert replay(EMPTY_IMAGE, as_runs(records)) == one_by_one(records)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_replay_of_decoded_batches_equals_replay_of_their_records(seed: int) -> None:
    _, records = stream(seed)
    by_columns = by_rows = EMPTY_IMAGE
    for batch in build_batches((versioned(record) for record in records), 0, 20_000):
        by_columns = replay(by_columns, decode_batch(batch))
        by_rows = replay(by_rows, [VersionedRecord(logged.record, logged.version) for logged in iter_records(batch)])

    assert by_columns == by_rows == one_by_one(records)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_replay_in_parts_equals_replay_at_once_and_leaves_every_part_as_it_was(seed: int) -> None:
    made = RecordStream(Random(seed))
    image, history = EMPTY_IMAGE, []
    records: list[Any] = []
    for operation in made.operations(12):
        records += operation
        image = replay(image, as_runs(operation))
        history.append((image, state_of(image)))

    assert image == replay(EMPTY_IMAGE, as_runs(records))
    for earlier, state in history:
        assert state_of(earlier) == state


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_images_are_equal_exactly_if_they_say_the_same(seed: int) -> None:
    """Also where rows lie elsewhere, directories have other codes, and pages other widths."""
    made, records = stream(seed)
    image = one_by_one(records)
    rebuilt = replay(EMPTY_IMAGE, [*image_records(image)])

    assert rebuilt == image
    more = made.records(3)
    changed = replay(image, [versioned(record) for record in more])
    assert (changed == rebuilt) == (state_of(changed) == state_of(rebuilt))


def test_provenance_is_what_the_caller_says() -> None:
    provenance = Provenance(7, 3, 99)

    assert replay(EMPTY_IMAGE, [], provenance).provenance == provenance
