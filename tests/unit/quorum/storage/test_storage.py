"""What a node finds on its disk when it starts."""

from __future__ import annotations

from collections.abc import Callable
from errno import EIO
from itertools import count

import pytest

from quorate.metadata_log.batches.batch import build_batch, control_batch, place_batch
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import LeaderChangeMessage, VotersRecord, VotersVoter
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.quorum.config import VoterAddress
from quorate.quorum.errors import BatchTooLarge
from quorate.quorum.storage.leader_change import VoterHistory
from quorate.quorum.storage.storage import NodeStorage
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.default_parts import log_config, quorum_config
from tests.log_support import DIRECTORY, ModelledLog, fail_at, flush, make_batch, run_until

CONFIG = quorum_config("c", 1, bytes(16), (VoterAddress(1, "127.0.0.1", 9001),))
VOTERS = tuple(VotersRecord((VotersVoter(1, bytes([number]) * 16),)) for number in range(3))


def voting_node(seed: int = 0) -> ModelledLog:
    """Twelve batches in several segments, all promised, and the right to vote."""
    modelled = ModelledLog(seed, log_config(segment_bytes=300))
    for _ in range(12):
        modelled.append(epoch=1)
    modelled.flush()
    modelled.disk.put(f"{DIRECTORY}/{QUORUM_STATE_NAME}", encode_quorum_state(QuorumState(leader_epoch=1)))
    modelled.log.close()
    modelled.disk.power_cut(CrashPolicy.EVERYTHING)
    return modelled


def test_open_of_a_sound_log_keeps_the_vote() -> None:
    modelled = voting_node()
    storage = NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)
    assert storage.damage == ()
    assert storage.votes.has_file
    assert storage.log.end_offset == modelled.history.end_offset


def test_open_of_a_log_with_a_batch_that_no_peer_takes_is_refused() -> None:
    """Kafka's limit is the same; something else wrote it. Nothing of the log is set aside or cut."""
    modelled = ModelledLog(0, log_config())
    modelled.append(epoch=1)
    large = place_batch(build_batch(bytes(BATCH_BYTES_MAX), 1, 0), modelled.log.end_offset, 1)
    modelled.log.append(large)
    flush(modelled.log)
    modelled.log.close()

    def segments() -> dict[str, bytes]:
        return {path: modelled.disk.content(path) for path in modelled.disk.paths() if ".log" in path}

    before = segments()
    with pytest.raises(BatchTooLarge, match=f"{len(large)} bytes at offset 1"):
        NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)

    assert segments() == before


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
    assert set(storage.set_aside) <= names
    assert len(storage.set_aside) == 4


def sound(modelled: ModelledLog) -> None:
    """Nothing is wrong."""


def rot_in_a_segment(modelled: ModelledLog) -> None:
    modelled.disk.flip_bit(f"{DIRECTORY}/{modelled.log.segments[1][0]:020d}.log", 64, 0)


def rot_in_the_mark(modelled: ModelledLog) -> None:
    for slot in (0, 4096):
        modelled.disk.flip_bit(f"{DIRECTORY}/{MARK_NAME}", slot + 8, 1)


def rot_in_both(modelled: ModelledLog) -> None:
    rot_in_the_mark(modelled)
    rot_in_a_segment(modelled)


def lost_end(modelled: ModelledLog) -> None:
    base = modelled.log.segments[-1][0]
    modelled.disk.put(f"{DIRECTORY}/{base:020d}.log", b"")


def open_storage(modelled: ModelledLog) -> None:
    NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)


ENDS = [None, CrashPolicy.NOTHING, CrashPolicy.MIXED]


@pytest.mark.parametrize("way", ENDS, ids=str)
@pytest.mark.parametrize("fault", ["crash", "error"])
@pytest.mark.parametrize("damage", [sound, rot_in_a_segment, rot_in_the_mark, rot_in_both, lost_end])
def test_open_that_ends_at_any_disk_call_never_leaves_a_vote_with_less_than_was_promised(
    damage: Callable[[ModelledLog], None], fault: str, way: CrashPolicy | None
) -> None:
    """And never takes the vote where nothing was wrong: what could not be read is not damaged."""
    for call in count(1):
        modelled = voting_node(seed=call)
        damage(modelled)
        if fault == "crash":
            has_failed = run_until(modelled, open_storage, call)
        else:
            has_failed = fail_at(modelled, open_storage, call, EIO) is not None
            assert not has_failed or modelled.disk.open_handles == []
        modelled.disk.on_call = lambda operation, path: None
        if way is None:
            modelled.disk.kill()
        else:
            modelled.disk.power_cut(way)
        storage = NodeStorage.open(modelled.disk, DIRECTORY, CONFIG, modelled.config)
        is_whole = storage.log.end_offset == modelled.history.end_offset
        assert storage.votes.has_file == (damage is sound), f"{fault} at call {call}, then {way}"
        assert is_whole or not storage.votes.has_file
        assert is_whole == (damage in (sound, rot_in_the_mark)), f"{fault} at call {call}, then {way}"
        storage.close()
        assert modelled.disk.open_handles == []
        if not has_failed:
            return


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
