"""The durable term and vote."""

from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.metadata_log.directory.quorum_state import (
    NOBODY,
    QUORUM_STATE_NAME,
    QuorumState,
    QuorumStateStore,
    decode_quorum_state,
    encode_quorum_state,
    kafka_quorum_state,
)
from quorate.metadata_log.errors import CorruptState
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk
from tests.log_support import DIRECTORY, Crash, finish

PATH = f"{DIRECTORY}/{QUORUM_STATE_NAME}"
BEFORE = QuorumState(leader_epoch=4, voted_id=1, voted_directory_id=b"a" * 16)
STATIC = QuorumState(leader_epoch=12, leader_id=2, data_version=0, current_voters=(1, 2, 3))
AFTER = QuorumState(leader_epoch=5, voted_id=2, voted_directory_id=b"b" * 16)
STATES = [BEFORE, STATIC]


def stored(state: QuorumState | None, seed: int = 0) -> tuple[MemoryDisk, QuorumStateStore]:
    disk = MemoryDisk(Random(seed))
    disk.put(f"{DIRECTORY}/other", b"")
    store = QuorumStateStore(disk, DIRECTORY)
    if state is not None:
        finish(store.write_job(state).run())
    return disk, store


def test_files_of_kafka_are_read_and_written_byte_for_byte(kafka_data: Path) -> None:
    files = sorted(kafka_data.glob("**/quorum-state"))
    assert len(files) == 8
    for file in files:
        data = file.read_bytes()
        assert kafka_quorum_state(decode_quorum_state(data, str(file))) == data, file


def test_static_and_dynamic_files_say_what_kafka_knew(kafka_data: Path) -> None:
    static = decode_quorum_state((kafka_data / "static/m4/log/__cluster_metadata-0/quorum-state").read_bytes(), "f")
    assert static == QuorumState(leader_epoch=3, leader_id=2, data_version=0, current_voters=(1, 2, 3))
    path = kafka_data / "dynamic-small/m1/log-follower/__cluster_metadata-0/quorum-state"
    dynamic = decode_quorum_state(path.read_bytes(), "f")
    assert (dynamic.leader_epoch, dynamic.leader_id, dynamic.voted_id) == (2, 2, 2)
    assert len(dynamic.voted_directory_id) == 16
    assert any(dynamic.voted_directory_id)


@given(
    epoch=st.integers(0, 2**31 - 1),
    leader=st.integers(NOBODY, 2**31 - 1),
    vote=st.integers(NOBODY, 2**31 - 1),
    directory=st.binary(min_size=16, max_size=16),
)
def test_dynamic_state_survives_a_round_trip(epoch: int, leader: int, vote: int, directory: bytes) -> None:
    state = QuorumState(epoch, leader, vote, directory)
    assert decode_quorum_state(encode_quorum_state(state), "f") == state


@given(data=st.data())
@pytest.mark.parametrize("state", STATES, ids=lambda state: f"version-{state.data_version}")
def test_file_with_any_bits_of_one_byte_flipped_is_damaged(state: QuorumState, data: st.DataObject) -> None:
    written = bytearray(encode_quorum_state(state))
    written[data.draw(st.integers(0, len(written) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptState):
        decode_quorum_state(bytes(written), "f")


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"version-{state.data_version}")
def test_file_with_any_bit_flipped_is_damaged_or_says_the_same(state: QuorumState) -> None:
    written = encode_quorum_state(state)
    detected = 0
    for bit in range(8 * len(written)):
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            assert decode_quorum_state(bytes(flipped), "f") == state, bytes(flipped)
        except CorruptState:
            detected += 1
    assert detected == 8 * len(written), "there is no bit in the file that means nothing"


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"version-{state.data_version}")
def test_file_cut_short_anywhere_is_damaged(state: QuorumState) -> None:
    written = encode_quorum_state(state)
    for size in range(len(written)):
        with pytest.raises(CorruptState):
            decode_quorum_state(written[:size], "f")


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"version-{state.data_version}")
def test_file_without_a_checksum_is_believed_as_kafka_believes_it(state: QuorumState) -> None:
    assert decode_quorum_state(kafka_quorum_state(state), "f") == state


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"data_version":2}', "data_version 2"),
        (b'{"data_version":true}', "not an integer"),
        (b'{"leaderId":1,"data_version":1}', "leaderEpoch"),
        (b'{"leaderId":1,"leaderEpoch":"2","votedId":-1,"data_version":1}', "leaderEpoch"),
        (b'{"leaderId":1,"leaderEpoch":-2,"votedId":-1,"currentVoters":[],"data_version":0}', "epoch -2"),
        (
            b'{"leaderId":1,"leaderEpoch":2147483648,"votedId":-1,"currentVoters":[],"data_version":0}',
            "cannot stand",
        ),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"x","data_version":1}', "no uuid"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":7,"data_version":1}', "not a uuid"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"currentVoters":[1],"data_version":0}', "list of voters"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"currentVoters":[{}],"data_version":0}', "voterId"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0,"csc":7}', "unknown fields: 'csc'"),
        (b'{"crc":7,"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0}', "unknown fields: 'crc'"),
        (b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":0,"crc":7}', "the CRC does not match"),
    ],
)
def test_file_that_says_nothing_usable_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptState, match=reason):
        decode_quorum_state(data, "f")


def test_directory_without_the_file_has_no_vote() -> None:
    _, store = stored(None)
    assert store.load() is None


def test_damaged_file_is_not_a_fresh_start() -> None:
    disk, store = stored(BEFORE)
    disk.flip_bit(PATH, 3, 6)
    with pytest.raises(CorruptState):
        store.load()


@pytest.mark.parametrize("policy", [None, *CrashPolicy], ids=str)
def test_crash_while_a_vote_is_written_leaves_the_old_one_or_the_new_one(policy: CrashPolicy | None) -> None:
    """And what was read once stays: a node acts on it."""
    for call in count(1):
        disk, store = stored(BEFORE, seed=call)
        has_crashed = write_until(disk, store, call)
        if policy is None:
            disk.kill()
        else:
            disk.power_cut(policy)
        found = store.load()
        assert found in ((BEFORE, AFTER) if has_crashed else (AFTER,)), f"crash at call {call}"
        disk.power_cut(CrashPolicy.NOTHING)
        assert store.load() == found, f"crash at call {call}"
        if not has_crashed:
            return


def write_until(disk: MemoryDisk, store: QuorumStateStore, call: int) -> bool:
    left = call

    def step(operation: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash

    disk.on_call = step
    try:
        finish(store.write_job(AFTER).run())
    except Crash:
        return True
    finally:
        disk.on_call = lambda operation, path: None
    return False


def test_failed_sync_of_a_vote_leaves_the_old_one() -> None:
    disk, store = stored(BEFORE)
    disk.fail_next_sync(f"{PATH}.part")
    with pytest.raises(OSError, match="sync failed"):
        finish(store.write_job(AFTER).run())
    disk.kill()
    assert store.load() == BEFORE
    finish(store.write_job(AFTER).run())
    assert store.load() == AFTER
