"""Made-up histories: valid at every batch, as many records as asked for, the same bytes again."""

from collections import Counter
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.directory.reader import FileBatch, find_files, iter_batches
from quorate.metadata_log.ids import NO_LEADER, uuid_text
from quorate.metadata_log.records.records import VersionedRecord
from quorate.scripts.cli.logs.log_verification import LogVerification
from quorate.scripts.generated_history.digests import random_offsets, states_at
from quorate.scripts.generated_history.making import GenerationPlan, MadeHistory, make_history
from quorate.scripts.generated_history.partition_pool import flags_of
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.reassignment import ReassignmentStep, step_between
from quorate.snapshots.table.table_difference import table_difference


def made(tmp_path: Path, plan: GenerationPlan, name: str = "made") -> tuple[MadeHistory, Path]:
    directory = tmp_path / name
    return make_history(plan, directory, lambda _: None), directory


def batches(directory: Path) -> list[FileBatch]:
    return [batch for file in find_files(directory) if not file.is_checkpoint for batch in iter_batches(file)]


def bytes_of(directory: Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest() for path in files}


def types_of(directory: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for batch in batches(directory):
        for item in decode_batch(batch.data):
            if isinstance(item, VersionedRecord):
                counts[type(item.record).__name__] += 1
            else:
                counts[type(item).__name__] += len(item)
    return counts


def require_sound(image: MetadataImage) -> None:
    """What must hold of every partition, whatever has happened."""
    for topic in image.topics.by_id.values():
        for number, partition in image.partitions.partitions_of(topic.id):
            where = f"{topic.name}-{number}: {partition}"
            assert partition.leader == NO_LEADER or partition.leader in partition.isr, where
            assert set(partition.isr) <= set(partition.replicas), where
            assert not set(partition.isr) & set(partition.elr), where
            assert set(partition.elr) <= set(partition.replicas), where
            assert {*partition.adding_replicas, *partition.removing_replicas} <= set(partition.replicas), where
            assert partition.leader_epoch <= partition.partition_epoch, where


@pytest.mark.parametrize("seed", range(3))
def test_every_batch_can_be_replayed_and_the_state_stays_sound(tmp_path: Path, seed: int) -> None:
    _, directory = made(tmp_path, GenerationPlan(2500, seed, segments=3, partitions=80))

    state = ReplayState()
    for number, batch in enumerate(batches(directory)):
        state = state.replay_batch(batch.data)
        if number % 20 == 0:
            require_sound(state.head)
    require_sound(state.stable)


def test_reassignments_go_on_by_the_steps_of_their_table(tmp_path: Path) -> None:
    _, directory = made(tmp_path, GenerationPlan(6000, 11, segments=3))
    steps: set[ReassignmentStep | None] = set()
    state = ReplayState()
    for batch in batches(directory):
        old, state = state.head.partitions, state.replay_batch(batch.data)
        new = state.head.partitions
        difference = table_difference(old, new)
        for row, old_row in zip(difference.rows.tolist(), difference.old_rows.tolist(), strict=True):
            before, after = old.partition(old_row) if old_row >= 0 else None, new.partition(row)
            if before is not None and after.partition_epoch > before.partition_epoch:
                steps.add(step_between(before.assignment, after.assignment, {*before.isr, *after.isr}))

    assert {ReassignmentStep.STARTED, ReassignmentStep.COMPLETED, ReassignmentStep.CANCELLED} <= steps


@pytest.mark.parametrize("seed", [11, 12])
def test_generator_and_replay_agree_on_every_partition(tmp_path: Path, seed: int) -> None:
    """The generator keeps its own state by its own means: it must be what the log says."""
    history, directory = made(tmp_path, GenerationPlan(5000, seed, segments=2))
    state = ReplayState()
    for batch in batches(directory):
        state = state.replay_batch(batch.data)
    image, pool, topics = state.stable, history.operations.pool, history.operations.topics

    assert {name: uuid_text(topic.id) for name, topic in image.topics.by_name.items()} == {
        topics.names[number]: uuid_text(topics.id_of(number)) for number in topics.present
    }
    assert len(image.partitions) == pool.held_count
    for number in topics.present:
        columns = pool.columns.take(topics.rows[number])
        for row, partition in enumerate(columns.number.tolist()):
            place = image.partitions.row(topics.id_of(number), partition)
            assert place is not None
            found = image.partitions.partition(place)
            replicas = columns.replicas[row]
            count = int(columns.replica_count[row])
            codes = columns.directories[row, :count]
            assert found.replicas == tuple(replicas[:count].tolist())
            assert found.leader == int(columns.leader_id[row])
            assert found.directories == tuple(d.tobytes() for d in history.operations.brokers.directory_ids[codes])
            for name, masks in (
                ("isr", columns.isr),
                ("elr", columns.elr),
                ("adding_replicas", columns.adding),
                ("removing_replicas", columns.removing),
            ):
                members = np.sort(replicas[flags_of(masks)[row]]).tolist()
                assert sorted(getattr(found, name)) == members, name
            last_known = int(columns.last_known_leader[row])
            assert found.last_known_elr == (() if last_known == NO_LEADER else (last_known,))
            assert bool(found.leader_recovery_state) == bool(columns.is_recovering[row])


def test_same_plan_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    plan = GenerationPlan(3000, 5, segments=3, checkpoint_every=1000)

    _, first = made(tmp_path, plan, "first")
    _, second = made(tmp_path, plan, "second")
    _, other = made(tmp_path, GenerationPlan(3000, 6, segments=3, checkpoint_every=1000), "other")

    assert bytes_of(first) == bytes_of(second)
    assert bytes_of(first) != bytes_of(other)


@pytest.mark.parametrize("records", [1000, 1001, 5003])
def test_log_has_exactly_the_records_asked_for_and_ends_inside_a_transaction(tmp_path: Path, records: int) -> None:
    history, directory = made(tmp_path, GenerationPlan(records, 2, segments=4))
    state = ReplayState()
    for batch in batches(directory):
        state = state.replay_batch(batch.data)

    assert history.end_offset == state.end_offset == records
    assert state.in_transaction
    assert len([file for file in find_files(directory) if not file.is_checkpoint]) == 4


def test_time_passes_over_months_and_never_goes_back(tmp_path: Path) -> None:
    _, directory = made(tmp_path, GenerationPlan(5000, 3, days=100))
    times = [batch.header.timestamp for batch in batches(directory)]
    epochs = [batch.header.epoch for batch in batches(directory)]

    assert all(before <= after for before, after in pairwise(times))
    assert 60 * 86_400_000 < times[-1] - times[0] < 130 * 86_400_000
    assert epochs == sorted(epochs)


def test_history_has_everything_in_it(tmp_path: Path) -> None:
    """Of each kind of record that such a cluster writes there are some."""
    _, directory = made(tmp_path, GenerationPlan(20_000, 1, partitions=100))

    expected = {
        "AbortTransactionRecord",
        "AccessControlEntryRecord",
        "BeginTransactionRecord",
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ClientQuotaRecord",
        "ConfigRecord",
        "DelegationTokenRecord",
        "EndTransactionRecord",
        "FeatureLevelRecord",
        "LeaderChangeMessage",
        "NoOpRecord",
        "PartitionChangeRun",
        "PartitionChangeRecord",
        "PartitionRecord",
        "PartitionRun",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveAccessControlEntryRecord",
        "RemoveDelegationTokenRecord",
        "RemoveTopicRecord",
        "RemoveUserScramCredentialRecord",
        "TopicRecord",
        "UserScramCredentialRecord",
    }
    assert expected <= set(types_of(directory))


def test_checkpoints_and_log_are_verified(tmp_path: Path) -> None:
    """The log's own verification replays everything onto every checkpoint and compares the manifests' digests."""
    history, directory = made(tmp_path, GenerationPlan(6000, 9, segments=5, checkpoint_every=2000))

    verdict = LogVerification(find_files(directory), lambda _: None, is_whole_log=True).run()

    assert history.checkpoints == 2
    assert verdict.findings == []
    assert verdict.replayed_to == 6000


def test_digests_at_offsets_are_those_of_images_loaded_there(tmp_path: Path) -> None:
    """Inside of batches and transactions too, and at both ends."""
    _, directory = made(tmp_path, GenerationPlan(1500, 4, segments=2))
    offsets = [0, *random_offsets(directory, 9, seed=1), 1500]

    found = list(states_at(directory, offsets))

    assert [state.offset for state in found] == offsets
    assert found[-1].transaction is not None
    for state in found:
        image = load_image(directory, state.offset)
        assert state.digest == digest_image(image).text, state
        assert state.partitions == len(image.partitions)


def test_digest_beyond_the_end_is_refused(tmp_path: Path) -> None:
    _, directory = made(tmp_path, GenerationPlan(1000, 4))

    with pytest.raises(ImageNotAvailable, match="ends at offset 1000, before 1001"):
        list(states_at(directory, [1001]))
