"""What a node finds on its disk when it starts."""

from __future__ import annotations

from metadata_log.batch import control_batch, place_batch
from metadata_log.mark import MARK_NAME
from metadata_log.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from metadata_log.records import LeaderChangeMessage, VotersRecord, VotersVoter
from metadata_log.segment_log import LogConfig, MetadataLog
from quorum.config import QuorumConfig, VoterAddress
from quorum.leader_change import VoterHistory
from quorum.storage import NodeStorage
from tests.log_support import DIRECTORY, ModelledLog, flush, make_batch

CONFIG = QuorumConfig("c", 1, bytes(16), (VoterAddress(1, "127.0.0.1", 9001),))
VOTERS = tuple(VotersRecord((VotersVoter(1, bytes([number]) * 16),)) for number in range(3))


def voting_node() -> ModelledLog:
    """Twelve batches in several segments, all promised, and the right to vote."""
    modelled = ModelledLog(0, LogConfig(segment_bytes=300))
    for _ in range(12):
        modelled.append(epoch=1)
    modelled.flush()
    modelled.disk.put(f"{DIRECTORY}/{QUORUM_STATE_NAME}", encode_quorum_state(QuorumState(leader_epoch=1)))
    modelled.log.close()
    modelled.disk.kill()
    return modelled


def test_open_of_a_sound_log_keeps_the_vote() -> None:
    modelled = voting_node()
    storage = NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)
    assert storage.damage == ()
    assert storage.votes.has_file
    assert storage.log.end_offset == modelled.history.end_offset


def test_open_of_a_log_that_is_damaged_twice_sets_both_aside() -> None:
    """An unreadable mark hides what is wrong with a segment: it shows only once the mark is out of the way."""
    modelled = voting_node()
    second = modelled.log.segments[1][0]
    mark = f"{DIRECTORY}/{MARK_NAME}"
    for byte in range(len(modelled.disk.content(mark))):
        modelled.disk.flip_bit(mark, byte, 0)
    modelled.disk.flip_bit(f"{DIRECTORY}/{second:020d}.log", 64, 0)

    storage = NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)

    assert [damage.path for damage in storage.damage] == [mark, f"{DIRECTORY}/{second:020d}.log"]
    assert not storage.log.is_damaged
    assert storage.log.end_offset == second
    assert not storage.votes.has_file
    names = set(modelled.disk.list_directory(DIRECTORY))
    assert {f"{MARK_NAME}.damaged", f"{QUORUM_STATE_NAME}.damaged", f"{second:020d}.log.damaged"} <= names


def log_with_voter_sets() -> ModelledLog:
    """Three epochs, each opened by another voter set, with two batches of records behind."""
    modelled = ModelledLog()
    log = modelled.log
    for epoch, voters in enumerate(VOTERS, start=1):
        first = control_batch([(LeaderChangeMessage(1, (), ()), 0), (voters, 0)], 1_000)
        log.append(place_batch(first, log.end_offset, epoch))
        for _ in range(2):
            log.append(make_batch(log.end_offset, epoch).data)
    flush(log)
    log.close()
    modelled.disk.kill()
    return modelled


def test_voter_history_after_a_restart_knows_the_sets_of_every_epoch() -> None:
    modelled = log_with_voter_sets()
    log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
    history = VoterHistory(log)
    assert history.current() == VOTERS[2]
    log.truncate_to(8)
    assert history.current() == VOTERS[1]
    log.truncate_to(4)
    assert history.current() == VOTERS[0]


def test_voter_history_after_a_restart_reads_the_control_batches_alone() -> None:
    modelled = log_with_voter_sets()
    log = MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)
    assert log.control_batches_at_open == [0, 4, 8]
    read = log.read
    asked: list[int] = []

    def noted(index: int) -> bytes:
        asked.append(index)
        return read(index)

    log.read = noted  # type: ignore[method-assign]
    VoterHistory(log)
    assert asked == [0, 3, 6]
