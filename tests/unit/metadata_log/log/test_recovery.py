"""What is damage, what is a torn tail, and what a damaged log and a failing disk lead to."""

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumStateStore
from quorate.metadata_log.log.quarantine import set_aside
from quorate.metadata_log.log.segment_log import DamagedLog, LogConfig, MetadataLog
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, ModelledLog, checkpoint_bytes, contents, make_batch

WIDE = log_config()
SEGMENT = f"{DIRECTORY}/{0:020d}.log"


def flushed(count: int = 6, config: LogConfig = WIDE, seed: int = 0) -> ModelledLog:
    """One-record batches of epoch 1, all durable; then the process is killed."""
    modelled = ModelledLog(seed, config)
    for _ in range(count):
        modelled.append(epoch=1)
    modelled.flush()
    modelled.log.close()
    modelled.disk.kill()
    return modelled


def without_mark(modelled: ModelledLog) -> ModelledLog:
    modelled.disk.unlink(f"{DIRECTORY}/{MARK_NAME}")
    return modelled


def reopened(modelled: ModelledLog) -> MetadataLog:
    return MetadataLog.open(modelled.disk, DIRECTORY, modelled.config)


def assert_untouched(modelled: ModelledLog, before: dict[str, bytes]) -> None:
    assert {path: modelled.disk.content(path) for path in modelled.disk.paths()} == before


# --- below and above the mark ------------------------------------------------------------------------


def test_any_flipped_bit_below_the_mark_is_damage() -> None:
    """The last acknowledged batch: nothing follows it, so only the mark tells damage from a torn tail."""
    for byte in range(68):
        modelled = flushed()
        position = 5 * 68 + byte
        modelled.disk.flip_bit(SEGMENT, position, byte % 8)
        before = {path: modelled.disk.content(path) for path in modelled.disk.paths()}
        log = reopened(modelled)
        assert log.damage is not None, f"byte {byte}"
        assert (log.damage.path, log.damage.position, log.damage.offset) == (SEGMENT, 5 * 68, 5)
        assert_untouched(modelled, before)


def test_any_flipped_bit_above_the_mark_in_the_last_batch_is_told_from_a_sound_one() -> None:
    for byte in range(68):
        modelled = without_mark(flushed())
        modelled.disk.flip_bit(SEGMENT, 5 * 68 + byte, 5)
        log = reopened(modelled)
        if byte < 8:
            # Its CRC holds at the wrong offset: no torn write does that.
            assert log.is_damaged
        elif 12 <= byte < 16:
            # A raised epoch is a legal one, and no CRC covers it; Kafka could not tell either.
            assert log.end_offset == 6
        else:
            assert not log.is_damaged, f"byte {byte}"
            assert log.end_offset == log.durable_end == 5
            assert log.torn_tail is not None, f"byte {byte}"
            assert (log.torn_tail.position, log.torn_tail.offset, log.torn_tail.size) == (5 * 68, 5, 68)
            assert len(modelled.disk.durable_content(SEGMENT)) == 5 * 68


def test_any_flipped_bit_before_a_valid_batch_is_damage_even_above_the_mark() -> None:
    for byte in range(68):
        modelled = without_mark(flushed())
        modelled.disk.flip_bit(SEGMENT, 2 * 68 + byte, 3)
        log = reopened(modelled)
        assert log.damage is not None, f"byte {byte}"
        assert log.damage.path == SEGMENT
        # A raised epoch shows at the batch behind it, where it falls again.
        assert log.damage.position == (3 if 12 <= byte < 16 else 2) * 68


@pytest.mark.parametrize("position", [1, 4])
def test_raised_epoch_before_the_last_batch_is_damage_even_above_the_mark(position: int) -> None:
    modelled = without_mark(flushed())
    modelled.disk.flip_bit(SEGMENT, position * 68 + 14, 0)
    log = reopened(modelled)
    assert log.damage is not None
    assert f"epoch 1 after epoch {1 + 256}" in log.damage.reason


def test_log_cut_short_below_the_mark_is_damage() -> None:
    for size in range(5 * 68, 6 * 68):
        modelled = flushed()
        modelled.disk.put(SEGMENT, modelled.disk.content(SEGMENT)[:size])
        log = reopened(modelled)
        assert log.damage is not None, f"size {size}"
        assert log.damage.offset == 5


def test_log_cut_short_above_the_mark_is_a_torn_tail() -> None:
    for size in range(4 * 68 + 1, 5 * 68):
        modelled = without_mark(flushed())
        modelled.disk.put(SEGMENT, modelled.disk.content(SEGMENT)[:size])
        log = reopened(modelled)
        assert log.torn_tail is not None, f"size {size}"
        assert log.end_offset == 4
        assert contents(log) == list(modelled.history.batches[:4])


@pytest.mark.parametrize("zeros", [1, 60, 68, 5_000])
def test_zeros_behind_the_log_are_a_torn_tail(zeros: int) -> None:
    modelled = flushed()
    modelled.disk.put(SEGMENT, modelled.disk.content(SEGMENT) + bytes(zeros))
    log = reopened(modelled)
    assert log.torn_tail is not None
    assert log.end_offset == 6


def test_missing_segment_is_damage() -> None:
    modelled = flushed(12, log_config(segment_bytes=300))
    bases = [base for base, _ in modelled.log.segments]
    modelled.disk.unlink(f"{DIRECTORY}/{bases[1]:020d}.log")
    log = reopened(without_mark(modelled))
    assert log.damage is not None
    assert "missing" in log.damage.reason
    assert log.damage.first_bad_segment == bases[2]


def test_missing_newest_segment_is_damage_by_the_mark() -> None:
    modelled = flushed(12, log_config(segment_bytes=300))
    modelled.disk.unlink(f"{DIRECTORY}/{modelled.log.segments[-1][0]:020d}.log")
    log = reopened(modelled)
    assert log.damage is not None
    assert "promised up to 12" in log.damage.reason
    assert log.damage.first_bad_segment is None


def test_bad_end_of_a_segment_that_has_a_successor_is_damage() -> None:
    modelled = flushed(12, log_config(segment_bytes=300))
    path = f"{DIRECTORY}/{modelled.log.segments[0][0]:020d}.log"
    modelled.disk.put(path, modelled.disk.content(path)[:-1])
    log = reopened(without_mark(modelled))
    assert log.damage is not None
    assert log.damage.path == path


def test_segments_without_their_history_or_a_checkpoint_are_damage() -> None:
    modelled = flushed(12, log_config(segment_bytes=300))
    first, second = modelled.log.segments[0][0], modelled.log.segments[1][0]
    modelled.disk.unlink(f"{DIRECTORY}/{first:020d}.log")
    log = reopened(modelled)
    assert log.damage is not None
    assert (log.damage.position, log.damage.offset, log.damage.first_bad_segment) == (0, 0, second)


def test_damaged_checkpoint_that_the_log_needs_is_damage() -> None:
    modelled = ModelledLog()
    for _ in range(12):
        modelled.append(epoch=1)
    modelled.commit(12)
    modelled.flush()
    modelled.delete_prefix(10)
    modelled.flush()
    modelled.disk.flip_bit(f"{DIRECTORY}/{checkpoint_name(CheckpointId(10, 1))}", 90, 0)
    modelled.disk.kill()
    log = reopened(modelled)
    assert log.damage is not None
    assert [error.path for error in log.checkpoints_at_open.damaged] == [
        f"{DIRECTORY}/{checkpoint_name(CheckpointId(10, 1))}"
    ]


def test_mark_with_one_bad_slot_is_read_by_the_other() -> None:
    for slot in (0, 4096):
        modelled = flushed()
        modelled.disk.flip_bit(f"{DIRECTORY}/{MARK_NAME}", slot + 8, 1)
        assert not reopened(modelled).is_damaged


def test_mark_with_two_bad_slots_is_damage() -> None:
    modelled = flushed()
    for slot in (0, 4096):
        modelled.disk.flip_bit(f"{DIRECTORY}/{MARK_NAME}", slot + 8, 1)
    log = reopened(modelled)
    assert log.damage is not None
    assert log.damage.path == f"{DIRECTORY}/{MARK_NAME}"


def test_mark_beyond_a_log_is_fine_when_a_checkpoint_covers_it() -> None:
    modelled = flushed()
    modelled.disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(6, 1))}", checkpoint_bytes(CheckpointId(6, 1)))
    modelled.disk.put(SEGMENT, modelled.disk.content(SEGMENT)[: 3 * 68 + 5])
    log = reopened(modelled)
    assert not log.is_damaged
    assert log.dropped_for == (6, 1)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (6, 6, 1)


def test_checkpoint_of_another_history_below_the_commit_is_damage() -> None:
    modelled = flushed()
    modelled.reopen()
    modelled.commit(5)
    modelled.append()
    modelled.flush()
    modelled.disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(4, 9))}", checkpoint_bytes(CheckpointId(4, 9)))
    modelled.disk.kill()
    log = reopened(modelled)
    assert log.damage is not None
    assert log.damage.offset == 4


def test_checkpoint_within_a_batch_of_the_log_drops_the_log() -> None:
    modelled = without_mark(flushed())
    modelled.disk.put(SEGMENT, make_batch(0, 1, 10).data)
    modelled.disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(4, 1))}", checkpoint_bytes(CheckpointId(4, 1)))
    assert reopened(modelled).dropped_for == (4, 1)


# --- quarantine --------------------------------------------------------------------------------------


def test_damaged_log_can_be_read_but_not_changed() -> None:
    modelled = flushed()
    modelled.disk.flip_bit(SEGMENT, 4 * 68 + 63, 0)
    log = reopened(modelled)
    assert contents(log) == list(modelled.history.batches[:4])
    for change in (
        lambda: log.append(make_batch(4, 1).data),
        lambda: log.truncate_to(2),
        lambda: log.delete_prefix(2),
        lambda: log.install_checkpoint(9, 9),
        log.flush_job,
    ):
        with pytest.raises(DamagedLog):
            change()


def test_setting_aside_takes_the_vote_away_and_leaves_what_is_sound() -> None:
    modelled = flushed(12, log_config(segment_bytes=300))
    modelled.disk.put(f"{DIRECTORY}/{QUORUM_STATE_NAME}", b"{}")
    second = modelled.log.segments[1][0]
    modelled.disk.flip_bit(f"{DIRECTORY}/{second:020d}.log", 64, 0)
    damage = reopened(modelled).damage
    assert damage is not None
    names = set_aside(modelled.disk, DIRECTORY, damage)
    assert names[0] == "quorum-state.damaged"
    assert f"{second:020d}.log.damaged" in names
    log = reopened(modelled)
    assert not log.is_damaged
    assert log.end_offset == second
    assert QuorumStateStore(modelled.disk, DIRECTORY).load() is None


def test_setting_aside_twice_keeps_both() -> None:
    modelled = flushed()
    for _ in range(2):
        modelled.disk.flip_bit(SEGMENT, 63, 0)
        damage = reopened(modelled).damage
        assert damage is not None
        set_aside(modelled.disk, DIRECTORY, damage)
        modelled.history = modelled.history.cut(0)
        modelled.log = reopened(modelled)
        modelled.append(epoch=1)
        modelled.flush()
        modelled.disk.kill()
    names = modelled.disk.list_directory(DIRECTORY)
    assert {f"{0:020d}.log.damaged", f"{0:020d}.log.damaged-2"} <= set(names)


def test_setting_aside_that_is_cut_short_never_leaves_a_vote_with_a_shortened_log() -> None:
    class Crash(Exception):
        pass

    for last_call in range(1, 40):
        modelled = flushed(12, log_config(segment_bytes=300))
        modelled.disk.put(f"{DIRECTORY}/{QUORUM_STATE_NAME}", b"{}")
        modelled.disk.flip_bit(f"{DIRECTORY}/{modelled.log.segments[1][0]:020d}.log", 64, 0)
        damage = reopened(modelled).damage
        assert damage is not None
        left = last_call

        def count(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash

        modelled.disk.on_call = count
        try:
            set_aside(modelled.disk, DIRECTORY, damage)
            return
        except Crash:
            pass
        modelled.disk.on_call = lambda operation, path: None
        modelled.disk.power_cut(CrashPolicy.MIXED)
        log = reopened(modelled)
        has_vote = modelled.disk.exists(f"{DIRECTORY}/{QUORUM_STATE_NAME}")
        assert log.is_damaged or not has_vote, f"crash at call {last_call}"


# --- failing disks -----------------------------------------------------------------------------------


def test_nothing_written_before_a_failed_sync_is_vouched_for_without_writing_it_again() -> None:
    """The kernel drops dirty pages when a sync fails, and shows them as clean to the process that comes next."""
    for seed in range(20):
        modelled = flushed(3, seed=seed)
        modelled.reopen()
        modelled.append()
        modelled.append()
        modelled.disk.fail_next_sync(SEGMENT)
        with pytest.raises(OSError, match="sync failed"):
            modelled.flush()
        modelled.disk.kill()
        modelled.reopen()
        assert modelled.log.durable_end == modelled.log.end_offset == 5
        modelled.disk.power_cut(CrashPolicy.NOTHING)
        modelled.reopen()
        assert modelled.log.end_offset == 5


def test_tail_whose_cut_was_lost_with_a_failed_sync_does_not_come_back() -> None:
    """Else it would stand behind what was written since, and look like damage."""
    for seed in range(20):
        modelled = flushed(5, seed=seed)
        modelled.reopen()
        modelled.truncate(2)
        modelled.disk.fail_next_sync(SEGMENT)
        with pytest.raises(OSError, match="sync failed"):
            modelled.flush()
        modelled.disk.kill()
        modelled.reopen()
        assert modelled.log.end_offset == 2
        modelled.disk.power_cut(CrashPolicy.NOTHING)
        modelled.reopen()
        assert modelled.log.damage is None
        assert modelled.log.end_offset == 2


def test_full_disk_fails_the_flush_and_loses_nothing_promised() -> None:
    modelled = flushed(3)
    modelled.reopen()
    modelled.disk.capacity = sum(len(modelled.disk.content(path)) for path in modelled.disk.paths()) + 100
    modelled.append()
    modelled.append()
    with pytest.raises(OSError, match="no space"):
        modelled.flush()
    modelled.disk.kill()
    modelled.disk.capacity = None
    modelled.reopen()
    assert modelled.log.torn_tail is not None
    assert modelled.log.end_offset == 4
