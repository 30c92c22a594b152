"""Recoveries by which acknowledged records may be lost: what is said, what is asked, what is given out anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.saved_checkpoint import CountedContent, SavedCheckpoint, encode_trailer
from quorate.metadata_log.records.records import BeginTransactionRecord
from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.clusters.recover import app
from quorate.scripts.lost_majority.directory_survey import survey_directory
from quorate.scripts.lost_majority.errors import RecoveryError
from quorate.scripts.lost_majority.founding import apply_plan
from quorate.scripts.lost_majority.judgement import RunningController, judge
from quorate.scripts.lost_majority.numbers import EPOCHS_APART, moved_on
from quorate.scripts.lost_majority.plan import plan_from_backup
from quorate.scripts.terminal.command_line import run
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.table.table_editor import TableEditor
from tests.lost_quorum import CHANGE, EPOCH, Lost


@pytest.fixture
def lost(tmp_path: Path, kafka_data: Path) -> Lost:
    return Lost(tmp_path / "var", kafka_data / "dynamic-small/m1/log")


def test_copy_from_before_is_no_memory_of_its_controller(lost: Lost, tmp_path: Path) -> None:
    """An old copy of one controller, and the directory of another that never heard of what the others did since."""
    lags, copied, gone = sorted(lost.paths)
    copy = tmp_path / "copy"
    shutil.copytree(lost.paths[copied], copy)
    for node in (copied, gone):
        lost.write(node, EPOCH, CHANGE)
    holdings = [survey_directory(lost.paths[lags]), survey_directory(copy)]

    found = judge(holdings, as_left={lags})

    assert (found.intact, found.is_complete) == ((lags,), False)
    said = "\n".join(found.sentences)
    assert f"{copy} (node {copied}) ends at 2026-" in said
    assert f"If controller {copied} has not run since, say so: --as-left {copied}" in said
    assert lost.plan_of(found, holdings).lost_from == found.seed.end_offset
    assert judge(lost.look(lags, copied), as_left={lags, copied}).is_complete


def test_controller_that_is_said_to_be_as_left_and_has_no_directory_here_is_refused(lost: Lost) -> None:
    """A slip of the pen would leave the one that was meant a mere copy."""
    there, _, absent = sorted(lost.paths)
    done = CliRunner().invoke(app, ["survey", str(lost.paths[there]), "--as-left", str(absent)])
    assert done.exit_code == 2
    assert f"of controller {absent} no directory is here" in " ".join(done.output.replace("│", " ").split())


def test_directories_that_cannot_all_be_as_they_were_left_are_not_complete(lost: Lost) -> None:
    """A broker saw more committed than any of them holds, so one of a majority is older than was said."""
    holdings = lost.look()
    end = holdings[0].end_offset
    broker = RunningController(url="http://b", node_id=11, epoch=EPOCH, high_watermark=end + 1, active_id=None)

    found = judge(holdings, [broker])

    assert (len(found.intact), found.is_complete) == (3, False)
    said = "\n".join(found.sentences)
    assert "3 of 3 voters' directories are here and whole, and not all that was acknowledged is in the seed" in said


def test_state_after_which_records_may_be_lost_goes_on_above_every_number_that_they_gave_out(lost: Lost) -> None:
    """The lost records may have elected leaders, changed ISRs, registered brokers and given out producer ids."""
    node = min(lost.paths)
    end = lost.write(node, EPOCH, CHANGE)
    before = load_image(lost.paths[node], end)
    plan = lost.plan(lost.look(node))

    apply_plan(plan)

    assert (plan.lost_from, plan.state_offset) == (end, end)
    assert plan.end_offset > end + 999_999  # epochs of brokers are offsets
    for found in lost.look():
        assert (found.digest, found.end_offset, found.end_epoch) == (plan.digest, plan.end_offset, plan.generation)
        after = load_image(Path(found.path))
        rows = before.partitions.all_rows()
        assert len(rows)
        for name in ("leader_epochs", "partition_epochs"):
            was, now = before.partitions.column(rows, name), after.partitions.column(after.partitions.all_rows(), name)
            assert sorted(now) == sorted(was + EPOCHS_APART)
        assert (after.producer_ids.next_producer_id or 0) >= (before.producer_ids.next_producer_id or 0) + 10**9
        assert (after.topics, after.configs, after.cluster) == (before.topics, before.configs, before.cluster)


def test_numbers_that_have_come_to_their_end_are_refused(lost: Lost) -> None:
    image = load_image(lost.paths[min(lost.paths)])
    editor = TableEditor(image.partitions)
    rows = image.partitions.all_rows()
    editor.pages.add(rows, "leader_epochs", np.full(len(rows), (1 << 31) - 1 - EPOCHS_APART, np.int32))
    image = image._replace(partitions=editor.finish())

    with pytest.raises(RecoveryError, match="too near to the last one there can be"):
        moved_on(image)


@pytest.mark.parametrize(
    ("accepted", "code", "says"),
    [
        ((), 1, "records from offset 79 on, which were acknowledged, are lost or may be"),
        (("--accept-loss", "78"), 1, "say --accept-loss 79"),
        (("--accept-loss", "79"), 0, "Start it: quorate up"),
    ],
)
def test_plan_by_which_records_may_be_lost_needs_consent_and_not_only_yes(
    lost: Lost, tmp_path: Path, accepted: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lost.write(min(lost.paths), EPOCH, CHANGE, CHANGE)
    lost.plan(lost.look(min(lost.paths))).save(tmp_path / "plan.json")
    arguments = ["recover", "apply", str(tmp_path / "plan.json"), "--yes", *accepted]

    with pytest.raises(SystemExit) as ended:
        run(make_app(arguments), arguments)

    said = capsys.readouterr()
    assert ended.value.code == code
    assert says in said.out + said.err
    assert {one.generation > 0 for one in lost.look()} == {code == 0}


def test_consent_to_a_loss_that_there_is_not_is_refused(lost: Lost, tmp_path: Path) -> None:
    lost.plan(lost.look()).save(tmp_path / "plan.json")

    refused = CliRunner().invoke(app, ["apply", str(tmp_path / "plan.json"), "--yes", "--accept-loss", "1"])

    assert "no record is lost by this plan" in str(refused.exception)


def test_what_somebody_saw_committed_and_nobody_holds_is_lost(lost: Lost) -> None:
    node = min(lost.paths)
    (holding,) = lost.look(node)
    broker = RunningController(
        url="http://b", node_id=11, epoch=EPOCH, high_watermark=holding.end_offset + 7, active_id=None
    )

    found = judge([holding], [broker])

    assert found.sentences[0].startswith(f"LOST: records {holding.end_offset} to {holding.end_offset + 6} (7)")


def test_minority_says_what_is_kept_and_what_may_be_lost(lost: Lost) -> None:
    node = min(lost.paths)
    others = ", ".join(str(other) for other in sorted(lost.paths) if other != node)
    end = lost.write(node, EPOCH, CHANGE)

    found = judge(lost.look(node))

    assert (found.intact, found.is_complete) == ((node,), False)
    said = "\n".join(found.sentences)
    assert f"1 of 3 voters' directories are here and whole, which is no majority: what voters {others}" in said
    assert f"beyond offset {end}, after 2027-01-15" in said
    assert [line for line in found.sentences if "kept" in line] == [
        (
            f"kept, up to offset {end - 1}: records 0 to {end - 6} ({end - 5}), known to have been committed; "
            f"records {end - 5} to {end - 1} (5), not known to have been: perhaps nobody was told that they hold"
        )
    ]


def test_record_is_known_to_have_been_committed_when_anybody_of_its_epoch_or_before_says_so(lost: Lost) -> None:
    """A later leader may not have had it, so what is known in its epoch says nothing of a log that it is not in."""
    node = min(lost.paths)
    holdings = lost.look()
    seed, end = holdings[0], lost.write(node, EPOCH, CHANGE)
    (longer,) = lost.look(node)

    def kept(epoch: int, high_watermark: int, wanted: str | None = None) -> str:
        broker = RunningController(
            url="http://b", node_id=11, epoch=epoch, high_watermark=high_watermark, active_id=None
        )
        found = judge([longer, *(one for one in holdings if one.node_id != node)], [broker], wanted)
        (line,) = (line for line in found.sentences if "kept" in line)
        return line

    assert seed.end_offset == end - 1
    everything = f"kept, up to offset {end - 1}: records 0 to {end - 1} ({end}), known to have been committed"
    assert kept(EPOCH, end) == kept(EPOCH, end + 7) == everything
    assert "; records " in kept(EPOCH + 1, end)
    other = next(one for one in holdings if one.node_id != node)
    assert other.commit is None
    assert kept(EPOCH, end, other.path) == (
        f"kept, up to offset {end - 2}: records 0 to {end - 2} ({end - 1}), not known to have been: perhaps "
        "nobody was told that they hold"
    )


def test_records_of_an_open_transaction_are_not_counted_among_those_that_are_kept(lost: Lost) -> None:
    node = min(lost.paths)
    begin = lost.look(node)[0].end_offset
    end = lost.write(node, EPOCH, BeginTransactionRecord("half"), CHANGE)

    said = [line for line in judge(lost.look(node)).sentences if "kept" in line]

    assert said[0].startswith(f"kept, up to offset {begin - 1}: records 0 to ")
    assert said[1:] == [f"not kept: records {begin} to {end - 1} (2), an open transaction, which is aborted"]


def test_backup_goes_on_above_everything_that_was_seen(lost: Lost, tmp_path: Path) -> None:
    node = min(lost.paths)
    backup = tmp_path / "backup"
    shutil.copytree(lost.paths[node], backup)
    end = lost.write(node, EPOCH + 3, CHANGE)
    holdings = lost.look()

    plan = plan_from_backup(backup, None, judge(holdings), holdings, lost.targets())
    apply_plan(plan)

    old = digest_image(moved_on(load_image(backup))).text
    assert plan.end_offset > end + 999_999
    assert plan.lost_from == load_image(backup).provenance.end_offset
    assert "1 records after it that are known to have been committed are undone" not in plan.sentences[0]
    for found in lost.look():
        assert (found.digest, found.end_offset, found.end_epoch) == (old, plan.end_offset, plan.generation)


def saved_file(file: Path, lost: Lost, cluster_id: str) -> Path:
    """What `quorate snapshot save` would have made of a controller of this cluster."""
    image = load_image(lost.paths[min(lost.paths)])
    content = b"".join(checkpoint_batches(image, 0))
    counted = CountedContent()
    counted.add(content)
    covers = CheckpointId(image.provenance.end_offset, image.provenance.epoch)
    digest = digest_image(image).value
    saved = SavedCheckpoint(covers, counted.size, counted.crc, digest, cluster_id, 0, 0)
    file.write_bytes(content + encode_trailer(saved))
    return file


def test_saved_checkpoint_is_taken_alone_whatever_lies_beside_it(lost: Lost, tmp_path: Path) -> None:
    cluster_id = lost.look()[0].cluster_id
    assert cluster_id is not None
    (tmp_path / "home").mkdir()
    file = saved_file(tmp_path / "home" / "state", lost, cluster_id)
    holdings = lost.look()
    plan = plan_from_backup(file, None, judge(holdings), holdings, lost.targets())
    (tmp_path / "home" / "letter").write_text("written between plan and apply")
    apply_plan(plan)
    old = digest_image(moved_on(load_image(file))).text
    assert {found.digest for found in lost.look()} == {old}


def test_saved_checkpoint_that_changes_after_the_plan_or_is_another_cluster_s_is_refused(
    lost: Lost, tmp_path: Path
) -> None:
    holdings = lost.look()
    other = saved_file(tmp_path / "other", lost, "another")
    with pytest.raises(RecoveryError, match="was saved from cluster another, and this is"):
        plan_from_backup(other, None, judge(holdings), holdings, lost.targets())
    file = saved_file(tmp_path / "state", lost, holdings[0].cluster_id or "")
    plan = plan_from_backup(file, None, judge(holdings), holdings, lost.targets())
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(RecoveryError, match="changed"):
        apply_plan(plan)
