"""What a controller says of its own disk when it starts."""

from __future__ import annotations

from structlog.testing import capture_logs

from quorate.controller.process.disk_findings import DiskFindings
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.storage.storage import NodeStorage
from tests.log_support import DIRECTORY, ModelledLog
from tests.unit.quorum.storage.test_storage import CONFIG, rot_in_a_segment, voting_node


def said(modelled: ModelledLog, *, is_short_of_space: bool = False) -> tuple[list[tuple[str, str]], DiskFindings]:
    """Event and level of each line of a start on that disk, and what is standing afterwards."""
    storage = NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)
    findings = DiskFindings(storage.damage, storage.state_damage, is_short_of_space=is_short_of_space)
    with capture_logs() as lines:
        findings.write_down(storage.log, storage.set_aside)
    return [(line["event"], line["log_level"]) for line in lines], findings


def test_start_on_a_sound_disk_says_nothing() -> None:
    lines, findings = said(voting_node())
    assert (lines, findings.sentences(is_voting=True)) == ([], [])


def test_log_that_was_set_aside_is_told_with_its_files_and_stays_an_alarm_when_it_votes_again() -> None:
    modelled = voting_node()
    rot_in_a_segment(modelled)
    lines, findings = said(modelled)
    assert lines == [("log.set_aside", "warning"), ("log.no_vote", "warning")]
    [waiting], [voting] = (findings.sentences(is_voting=is_voting) for is_voting in (False, True))
    assert ".log: damaged at byte" in waiting
    assert (waiting.endswith("it does not vote yet"), voting.endswith("it votes again")) == (True, True)


def test_torn_tail_checkpoint_and_full_disk_are_told() -> None:
    modelled = voting_node()
    modelled.log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
    base = modelled.log.segments[-1][0]
    modelled.log.close()
    segment = f"{DIRECTORY}/{base:020d}.log"
    modelled.disk.put(segment, modelled.disk.content(segment) + b"half a batch")
    modelled.disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(4, 1))}", b"no checkpoint")
    lines, findings = said(modelled, is_short_of_space=True)
    assert lines == [
        ("log.torn_tail_cut", "warning"),
        ("checkpoint.passed_over", "warning"),
        ("disk.nearly_full", "warning"),
    ]
    assert findings.sentences(is_voting=True) == [
        "its disk is nearly full: the node stops when it can write no more"
    ], "what was never promised is no alarm"


def test_election_state_that_cannot_be_read_is_told() -> None:
    modelled = voting_node()
    modelled.disk.put(f"{DIRECTORY}/quorum-state", b"{")
    lines, findings = said(modelled)
    assert lines == [("election_state.damaged", "warning")]
    assert findings.sentences(is_voting=False)[0].startswith("its election state could not be read")
