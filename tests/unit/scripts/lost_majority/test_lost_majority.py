"""Surveys of directories, what follows from them, and founding anew: on real files, without processes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.metadata_log.batches.batch import place_batch
from quorate.metadata_log.batches.builder import build_batches
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME, MetadataDirectory
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, decode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    ConfigRecord,
    NoOpRecord,
    VersionedRecord,
)
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.lost_majority.directory_survey import survey_directory
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.founding import apply_plan
from quorate.scripts.lost_majority.judgement import judge
from quorate.scripts.lost_majority.numbers import moved_on
from quorate.scripts.lost_majority.plan import RecoveryPlan, plan_from_backup
from quorate.scripts.lost_majority.verification import verify
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.log_support import SMALL_SEGMENTS
from tests.lost_quorum import CHANGE, EPOCH, Lost


@pytest.fixture
def lost(tmp_path: Path, kafka_data: Path) -> Lost:
    return Lost(tmp_path / "var", kafka_data / "dynamic-small/m1/log")


def segment(path: Path) -> Path:
    return max((path / LOG_DIRECTORY_NAME).glob("*.log"))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


# --- what a directory holds --------------------------------------------------------------------------


def test_survey_changes_nothing_and_tells_what_is_there(lost: Lost, kafka_data: Path) -> None:
    image = load_image(kafka_data / "dynamic-small/m1/log")
    node, path = next(iter(lost.paths.items()))
    names = sorted(file.name for file in path.rglob("*"))

    first, second = survey_directory(path), survey_directory(path)

    assert first == second
    assert sorted(file.name for file in path.rglob("*")) == names
    assert (first.node_id, first.end_offset, first.end_epoch) == (
        node,
        image.provenance.end_offset,
        image.provenance.epoch,
    )
    assert first.digest == digest_image(image).text
    assert (first.is_intact, first.commit, first.generation) == (True, None, 0)
    assert first.voters == tuple(sorted(voter.voter_id for voter in image.kraft.voters.voters))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda path: flip(segment(path), 200), "damaged at byte"),
        (lambda path: (path / META_PROPERTIES_NAME).unlink(), "meta.properties is missing"),
        (lambda path: (path / LOG_DIRECTORY_NAME / QUORUM_STATE_NAME).write_bytes(b"{"), "no JSON"),
        (lambda path: (path / LOG_DIRECTORY_NAME / "mark").write_bytes(b"x" * 8192), "neither of its two slots"),
    ],
    ids=["log", "identity", "vote", "mark"],
)
def test_damage_is_told_and_its_directory_is_not_counted(
    lost: Lost, spoil: Callable[[Path], object], problem: str
) -> None:
    path = lost.paths[min(lost.paths)]
    spoil(path)

    found = survey_directory(path)

    assert not found.is_intact
    assert problem in "\n".join(found.damage)


def test_torn_tail_is_no_damage_and_does_not_count(lost: Lost) -> None:
    node = min(lost.paths)
    before = lost.look(node)[0]
    with segment(lost.paths[node]).open("ab") as file:
        file.write(b"half a batch that was never synced")

    found = lost.look(node)[0]

    assert (found.damage, found.end_offset, found.digest) == ((), before.end_offset, before.digest)


def cut_power(path: Path) -> int:
    """Leave a write that was never synced, with a page missing that later ones follow; where its log is sound to."""
    log = MetadataLog.open(RealDisk(), str(path / LOG_DIRECTORY_NAME), SMALL_SEGMENTS)
    log.close()
    (batch,) = build_batches([VersionedRecord(ConfigRecord(4, "", "a", "x" * 3_000), 0)], 1_800_000_000_000)
    write = bytearray(b"".join(place_batch(batch, log.end_offset + number, EPOCH) for number in range(6)))
    begin = segment(path).stat().st_size
    page = (begin // 4096 + 2) * 4096 - begin
    write[page : page + 4096] = bytes(4096)
    with segment(path).open("ab") as file:
        file.write(write)
    return log.end_offset + page // len(batch)


def test_power_cut_that_left_pages_of_the_last_write_out_everywhere_has_lost_nothing(lost: Lost) -> None:
    sound = [cut_power(path) for path in lost.paths.values()]

    found = lost.look()

    assert [one.damage for one in found] == [()] * 3
    assert [one.end_offset for one in found] == sound
    assert judge(found).is_complete


def test_what_is_no_metadata_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecoveryError, match="no metadata directory, it has no __cluster_metadata-0"):
        survey_directory(tmp_path)


# --- what follows ------------------------------------------------------------------------------------


def test_epoch_goes_before_length(lost: Lost) -> None:
    first, second, third = sorted(lost.paths)
    lost.write(first, EPOCH, *[NoOpRecord()] * 5)
    lost.write(second, EPOCH + 1, CHANGE)
    lost.write(third, EPOCH + 1, CHANGE)
    end = lost.write(third, EPOCH + 1, NoOpRecord())

    found = judge(lost.look())

    assert (found.seed.node_id, found.seed.end_offset) == (third, end)
    assert found.is_complete
    said = "\n".join(found.sentences)
    assert "no record that was acknowledged is missing from the seed" in said
    assert f"(node {first}) holds 5 records from offset {end - 2} on, up to epoch {EPOCH}" in said


def test_damaged_majority_is_no_majority(lost: Lost) -> None:
    first, second, third = sorted(lost.paths)
    flip(segment(lost.paths[second]), 200)
    shutil.rmtree(lost.paths[third])

    found = judge(lost.look(first, second))

    assert (found.seed.node_id, found.intact, found.is_complete) == (first, (first,), False)


def test_directories_of_two_clusters_are_refused(lost: Lost, tmp_path: Path, kafka_data: Path) -> None:
    other = Lost(tmp_path / "other", kafka_data / "dynamic-small/m1/log")

    with pytest.raises(RecoveryError, match="give those of one cluster"):
        judge([*lost.look(), *other.look()])


def test_directory_whose_files_are_gone_is_empty_and_no_seed(lost: Lost) -> None:
    path = lost.paths[min(lost.paths)]
    for file in (path / LOG_DIRECTORY_NAME).glob("*.log"):
        file.unlink()
    for file in (path / LOG_DIRECTORY_NAME).glob("*.checkpoint"):
        file.write_bytes(b"nothing")

    (found,) = lost.look(min(lost.paths))

    assert (found.end_offset, found.is_intact) == (0, False)
    assert lost.plan(lost.look()).seed != found


# --- founding ----------------------------------------------------------------------------------------


def test_quorum_is_founded_on_the_seed_and_everything_is_kept(lost: Lost) -> None:
    first, second, third = sorted(lost.paths)
    end = lost.write(second, EPOCH + 1, CHANGE)
    digest = lost.look(second)[0].digest
    shutil.rmtree(lost.paths[third])
    plan = lost.plan(lost.look(first, second))
    details = [finding.detail for finding in verify(plan, None).findings]
    assert "no metadata directory is there: `quorate recover apply` makes it" in details

    found = apply_plan(plan)

    assert plan.generation == EPOCH + 1 + 1_000
    assert [one.kept is None for one in found] == [False, False, True]
    assert lost.look(second)[0].digest == digest
    for node, path in lost.paths.items():
        opened = MetadataDirectory.open(RealDisk(), str(path), node, plan.cluster_id)
        opened.close()
        assert opened.meta.generation == plan.generation
        assert digest_image(load_image(path, end)).text == digest
        state = (path / LOG_DIRECTORY_NAME / QUORUM_STATE_NAME).read_bytes()
        assert decode_quorum_state(state, "").leader_epoch == plan.generation
        assert list((path / LOG_DIRECTORY_NAME).glob(f"{end:020d}-*.checkpoint"))
    ids = {one.id: one.directory_id for one in ClusterPlan.load(lost.directory).controllers}  # type: ignore[union-attr]
    assert ids == {one.node_id: one.directory_id for one in plan.voters}
    kept = Path(found[1].kept or "") / META_PROPERTIES_NAME
    assert decode_meta_properties(kept.read_bytes(), "").generation == 0
    assert verify(plan, None).verdict == "unknown"  # nobody runs


def test_damage_below_a_checkpoint_and_a_torn_tail_stay_behind(lost: Lost) -> None:
    node = min(lost.paths)
    before = lost.look(node)[0]
    apply_plan(lost.plan(lost.look()))  # with a checkpoint at its end
    flip(segment(lost.paths[node]), 200)
    (damaged,) = lost.look(node)
    assert (damaged.end_offset, damaged.first_segment) == (before.end_offset, None)
    flip(segment(lost.paths[node]), 200)
    old = segment(lost.paths[node])
    end = lost.write(node, before.end_epoch + 2_000, CHANGE)
    new = segment(lost.paths[node])
    flip(old, 200)
    with new.open("ab") as file:
        file.write(b"torn")

    (found,) = lost.look(node)

    assert "damaged at byte" in "\n".join(found.damage)
    assert (found.end_offset, found.first_segment) == (end, before.end_offset)
    plan = lost.plan(lost.look())
    apply_plan(plan)
    (founded,) = lost.look(node)
    assert (founded.digest, founded.end_offset, founded.damage) == (plan.digest, end, ())
    assert min((lost.paths[node] / LOG_DIRECTORY_NAME).glob("*.log")).name == new.name


def test_open_transaction_stays_open_for_the_next_leader_to_abort(lost: Lost) -> None:
    node = min(lost.paths)
    stable = lost.look(node)[0]
    end = lost.write(node, EPOCH, BeginTransactionRecord("half a topic"), CHANGE)
    plan = lost.plan(lost.look())

    apply_plan(plan)

    assert (plan.state_offset, plan.end_offset, plan.digest) == (stable.end_offset, end, stable.digest)
    for found in lost.look():
        assert (found.end_offset, found.state_offset, found.digest) == (end, stable.end_offset, stable.digest)
        assert found.checkpoints[-1].end_offset == stable.end_offset


def test_backup_whose_newest_checkpoint_is_damaged_is_taken_from_the_log(lost: Lost, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(lost.paths[min(lost.paths)], backup)
    whole = load_image(backup)
    damaged = backup / LOG_DIRECTORY_NAME / checkpoint_name(CheckpointId(whole.provenance.end_offset, EPOCH))
    damaged.write_bytes(b"half-written")
    holdings = lost.look()

    plan = plan_from_backup(backup, None, judge(holdings), holdings, lost.targets())

    assert (plan.state_offset, plan.digest) == (whole.provenance.end_offset, digest_image(moved_on(whole)).text)
    assert [line for line in plan.sentences if line.startswith(f"{damaged}: passed over, it is damaged at byte 0: ")]


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, 5])
def test_founding_that_is_broken_off_goes_on(lost: Lost, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """At any of the renames that put directories in place; then the same plan again."""
    plan = lost.plan(lost.look())
    rename, left = os.rename, [calls]

    def failing(old: Path, new: Path) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        rename(old, new)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(KeyboardInterrupt):
        apply_plan(plan)
    monkeypatch.undo()

    found = apply_plan(plan)

    assert all(one.kept is not None for one in found)
    assert {one.generation for one in lost.look()} == {plan.generation}
    assert apply_plan(plan) == found


def test_plan_whose_input_changed_is_refused(lost: Lost) -> None:
    plan = lost.plan(lost.look())
    lost.write(min(lost.paths), EPOCH, CHANGE)

    with pytest.raises(RecoveryError, match="has changed since the plan was made: make a new plan"):
        apply_plan(plan)
    assert {one.generation for one in lost.look()} == {0}


def test_directory_that_is_not_this_controllers_is_not_moved_aside(lost: Lost, tmp_path: Path) -> None:
    plan = lost.plan(lost.look())
    other = tmp_path / "of-somebody"
    other.mkdir()
    (other / "thesis.txt").write_text("kept")
    voter = plan.voters[0]
    theirs = str(lost.paths[max(lost.paths)])
    for place, why in ((str(other), "is no metadata directory"), (theirs, "it is not moved aside")):
        voters = (voter.model_copy(update={"directory": place}), *plan.voters[1:])
        with pytest.raises(RecoveryError, match=why):
            apply_plan(plan.model_copy(update={"voters": voters}))
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert {one.generation for one in lost.look()} == {0}


def test_directory_in_use_is_refused(lost: Lost) -> None:
    plan = lost.plan(lost.look())
    node = min(lost.paths)
    held = MetadataDirectory.open(RealDisk(), str(lost.paths[node]), node)
    try:
        assert lost.look(node)[0].is_in_use
        with pytest.raises(RecoveryError, match="is in use, and moves on: stop its controller first, then plan"):
            lost.plan(lost.look())
        with pytest.raises(RecoveryError, match="is in use: stop its controller first"):
            apply_plan(plan)
    finally:
        held.close()


def test_plan_is_read_back_and_never_written_over(lost: Lost, tmp_path: Path) -> None:
    plan = lost.plan(lost.look())
    plan.save(tmp_path / "plan.json")

    assert RecoveryPlan.load(tmp_path / "plan.json") == plan
    with pytest.raises(RecoveryError, match="is there already"):
        plan.save(tmp_path / "plan.json")
    (tmp_path / "other.json").write_text('{"generation": -1}')
    with pytest.raises(RecoveryError, match="is no recovery plan"):
        RecoveryPlan.load(tmp_path / "other.json")
    with pytest.raises(RecoveryError, match="no such file"):
        RecoveryPlan.load(tmp_path / "none.json")
