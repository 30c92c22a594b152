"""Checkpoint files: checked, written, sent, received, removed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import (
    BOOTSTRAP_ID,
    CheckpointId,
    check_checkpoint,
    checkpoint_id,
    checkpoint_name,
    list_checkpoints,
    manifest_name,
    survey_checkpoints,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointDownload, InvalidChunk, OfferedCheckpoint
from quorate.metadata_log.checkpoints.checkpoints import (
    CheckpointContent,
    CheckpointStore,
    PositionOutOfRange,
    UnknownCheckpoint,
)
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptCheckpoint, CorruptState, InvariantViolation
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk
from tests.log_support import DIRECTORY, Crash, checkpoint_bytes, finish

ID = CheckpointId(42, 3)
MANIFEST = CheckpointManifest({"TOPIC": 2, "PARTITION": 7}, b"d" * 32)


def new_store(seed: int = 0) -> tuple[MemoryDisk, CheckpointStore]:
    disk = MemoryDisk(Random(seed))
    disk.put(f"{DIRECTORY}/partition.metadata", b"")
    return disk, reopened(disk)


def reopened(disk: MemoryDisk) -> CheckpointStore:
    return CheckpointStore(disk, DIRECTORY, survey_checkpoints(disk, DIRECTORY))


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def write(store: CheckpointStore, checkpoint: CheckpointId = ID, filling: bytes = b"state") -> bytes:
    data = checkpoint_bytes(checkpoint, filling)
    job = store.write_job(checkpoint, CheckpointContent(pieces(data, 50), lambda: MANIFEST))
    finish(job.run())
    store.job_done(job)
    return data


# --- names and checks --------------------------------------------------------------------------------


def test_names_are_kafkas_and_nothing_else_is_one() -> None:
    assert checkpoint_name(CheckpointId(2781, 1)) == "00000000000000002781-0000000001.checkpoint"
    assert checkpoint_id("00000000000000002781-0000000001.checkpoint") == CheckpointId(2781, 1)
    for name in (
        "00000000000000002781-0000000001.checkpoint.part",
        "00000000000000002781-0000000001.checkpoint.deleted",
        "2781-1.checkpoint",
        "bootstrap.checkpoint",
        "00000000000000002781.log",
        "00000000000000002781-0000000001.checkpoint\n",
    ):
        assert checkpoint_id(name) is None


def test_checkpoints_of_kafka_are_usable(kafka_data: Path) -> None:
    disk = RealDisk()
    seen = []
    for directory in sorted(kafka_data.glob("*/m*/log*/__cluster_metadata-0")):
        survey = survey_checkpoints(disk, str(directory))
        assert survey.damaged == ()
        assert [info.id for info in survey.usable] == list_checkpoints(disk, str(directory))
        seen += [info.id for info in survey.usable]
    assert len(seen) == 17
    assert BOOTSTRAP_ID in seen


def test_every_flipped_bit_in_a_checkpoint_is_found() -> None:
    data = checkpoint_bytes(ID)
    disk, _ = new_store()
    path = f"{DIRECTORY}/{checkpoint_name(ID)}"
    for position in range(len(data)):
        disk.put(path, data)
        disk.flip_bit(path, position, position % 8)
        with pytest.raises(CorruptCheckpoint):
            check_checkpoint(disk, path, ID)


def test_checkpoint_cut_anywhere_is_found() -> None:
    data = checkpoint_bytes(ID)
    disk, _ = new_store()
    path = f"{DIRECTORY}/{checkpoint_name(ID)}"
    for size in range(len(data)):
        disk.put(path, data[:size])
        with pytest.raises(CorruptCheckpoint):
            check_checkpoint(disk, path, ID)


def test_checkpoint_of_another_epoch_than_its_name_is_damaged() -> None:
    disk, _ = new_store()
    for epoch in (2, 4):
        disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(42, epoch))}", checkpoint_bytes(ID))
    survey = survey_checkpoints(disk, DIRECTORY)
    assert survey.usable == ()
    assert len(survey.damaged) == 2


# --- writing -----------------------------------------------------------------------------------------


def test_written_checkpoint_is_there_with_its_manifest_after_a_power_cut() -> None:
    disk, store = new_store()
    data = write(store)
    disk.power_cut(CrashPolicy.NOTHING)
    store = reopened(disk)
    assert store.latest is not None
    assert (store.latest.id, store.latest.size, store.latest.last_contained_timestamp) == (ID, len(data), 1_000)
    assert store.read(ID) == data
    assert store.manifest(ID) == MANIFEST


@pytest.mark.parametrize("policy", [policy for policy in CrashPolicy if policy is not CrashPolicy.PAGES])
def test_crash_while_a_checkpoint_is_written_leaves_it_whole_or_not_at_all(policy: CrashPolicy) -> None:
    crash_everywhere(lambda disk, store: write(store), policy)


def crash_everywhere(work: Callable[[MemoryDisk, CheckpointStore], object], policy: CrashPolicy) -> None:
    """After a crash at any call the older checkpoint is there, and the new one, if it has its name, is whole."""
    older = CheckpointId(20, 1)
    for last_call in count(1):
        disk, store = new_store(last_call)
        write(store, older)
        has_crashed = until_call(disk, last_call, lambda: work(disk, store))  # noqa: B023  called at once
        disk.power_cut(policy)
        survey = survey_checkpoints(disk, DIRECTORY)
        assert survey.damaged == (), f"crash at call {last_call}"
        found = {info.id for info in survey.usable}
        assert {older} <= found <= {older, ID}
        after = reopened(disk)
        if ID in found:
            assert after.manifest(ID) == MANIFEST, f"crash at call {last_call}"
        if not has_crashed:
            assert ID in found
            return


def until_call(disk: MemoryDisk, call: int, work: Callable[[], object]) -> bool:
    """Whether the disk call number ``call`` was reached, where it crashes."""
    left = call

    def step(operation: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash

    disk.on_call = step
    try:
        work()
    except Crash:
        return True
    finally:
        disk.on_call = lambda operation, path: None
    return False


def test_large_checkpoint_is_synced_in_pieces() -> None:
    disk, store = new_store()
    data = checkpoint_bytes(ID, bytes(9 * 1024 * 1024))
    calls: list[str] = []
    disk.on_call = lambda operation, path: calls.append(operation)
    job = store.write_job(ID, CheckpointContent(pieces(data, 1024 * 1024), lambda: MANIFEST))
    finish(job.run())
    assert calls[: calls.index("rename")].count("sync") >= 3
    store.job_done(job)
    assert store.read(ID) == data


def test_what_is_no_checkpoint_never_gets_the_name_of_one() -> None:
    disk, store = new_store()
    job = store.write_job(ID, CheckpointContent([checkpoint_bytes(ID)[:-1]], lambda: MANIFEST))
    with pytest.raises(CorruptCheckpoint):
        finish(job.run())
    assert list_checkpoints(disk, DIRECTORY) == []
    with pytest.raises(InvariantViolation):
        store.job_done(job)


def test_writing_again_takes_the_place_of_the_old_bytes() -> None:
    disk, store = new_store()
    write(store, filling=b"one")
    data = write(store, filling=b"another")
    assert store.read(ID) == data
    assert store.manifest(ID) == MANIFEST
    assert [info.id for info in reopened(disk).infos] == [ID]


def test_manifest_of_other_bytes_is_refused() -> None:
    disk, store = new_store()
    write(store, filling=b"one")
    manifest = disk.content(f"{DIRECTORY}/{manifest_name(ID)}")
    write(store, filling=b"two")
    disk.put(f"{DIRECTORY}/{manifest_name(ID)}", manifest)
    with pytest.raises(CorruptState, match="other bytes"):
        store.manifest(ID)


def test_damaged_manifest_is_refused_and_a_missing_one_is_none() -> None:
    disk, store = new_store()
    write(store)
    for position in range(len(disk.content(f"{DIRECTORY}/{manifest_name(ID)}"))):
        disk.flip_bit(f"{DIRECTORY}/{manifest_name(ID)}", position, 2)
        with pytest.raises(CorruptState):
            store.manifest(ID)
        disk.flip_bit(f"{DIRECTORY}/{manifest_name(ID)}", position, 2)
    disk.unlink(f"{DIRECTORY}/{manifest_name(ID)}")
    assert store.manifest(ID) is None


# --- sending and receiving ---------------------------------------------------------------------------


def transfer(source: CheckpointStore, target: CheckpointStore, disk: MemoryDisk, size: int = 60) -> None:
    download = CheckpointDownload(disk, DIRECTORY, source.offer(ID))
    while not download.is_complete:
        finish(download.chunk_job(source.read_chunk(ID, download.position, size)).run())
    job = download.finish_job()
    finish(job.run())
    target.job_done(job)


def test_transferred_checkpoint_is_equal_with_its_manifest() -> None:
    _, source = new_store()
    data = write(source)
    disk, target = new_store()
    transfer(source, target, disk)
    disk.power_cut(CrashPolicy.NOTHING)
    assert reopened(disk).read(ID) == target.read(ID) == data
    assert target.manifest(ID) == MANIFEST


@pytest.mark.parametrize("policy", [policy for policy in CrashPolicy if policy is not CrashPolicy.PAGES])
def test_crash_while_a_checkpoint_is_received_leaves_it_whole_or_not_at_all(policy: CrashPolicy) -> None:
    _, source = new_store()
    write(source)
    crash_everywhere(lambda disk, store: transfer(source, store, disk), policy)


def test_download_goes_on_with_a_peer_that_has_the_same_bytes_only() -> None:
    _, one = new_store()
    write(one, filling=b"x" * 200)
    _, same = new_store()
    write(same, filling=b"x" * 200)
    _, other = new_store()
    write(other, filling=b"y" * 200)
    disk, target = new_store()
    download = CheckpointDownload(disk, DIRECTORY, one.offer(ID))
    finish(download.chunk_job(one.read_chunk(ID, 0, 100)).run())
    assert not download.can_continue(other.offer(ID))
    assert download.can_continue(same.offer(ID))
    while not download.is_complete:
        finish(download.chunk_job(same.read_chunk(ID, download.position, 100)).run())
    job = download.finish_job()
    finish(job.run())
    target.job_done(job)
    assert target.read(ID) == one.read(ID)


def test_chunk_that_is_not_the_next_one_changes_nothing() -> None:
    _, source = new_store()
    write(source)
    disk, _ = new_store()
    offer = source.offer(ID)
    download = CheckpointDownload(disk, DIRECTORY, offer)
    first = source.read_chunk(ID, 0, 40)
    finish(download.chunk_job(first).run())
    bad = [
        first,
        source.read_chunk(ID, 50, 10),
        replace(source.read_chunk(ID, 40, 10), id=CheckpointId(42, 4)),
        replace(source.read_chunk(ID, 40, 10), data=b""),
        replace(source.read_chunk(ID, 40, 10), crc=1),
        replace(source.read_chunk(ID, 40, 10), data=bytes(offer.size)),
    ]
    for chunk in bad:
        with pytest.raises(InvalidChunk):
            download.chunk_job(chunk)
    assert download.position == 40
    with pytest.raises(InvariantViolation):
        download.finish_job()


def test_download_of_something_wrong_is_thrown_away() -> None:
    _, source = new_store()
    data = write(source)
    disk, _ = new_store()
    offer = source.offer(ID)
    download = CheckpointDownload(disk, DIRECTORY, OfferedCheckpoint(ID, offer.size, offer.crc + 1, offer.manifest))
    finish(download.chunk_job(source.read_chunk(ID, 0, len(data))).run())
    with pytest.raises(CorruptCheckpoint):
        finish(download.finish_job().run())
    assert disk.list_directory(DIRECTORY) == ["partition.metadata"]


def test_checkpoint_of_kafka_is_offered_without_a_manifest(kafka_data: Path) -> None:
    directory = kafka_data / "static/m4/log/__cluster_metadata-0"
    disk = RealDisk()
    store = CheckpointStore(disk, str(directory), survey_checkpoints(disk, str(directory)))
    offer = store.offer(CheckpointId(15719, 1))
    assert offer.manifest is None
    assert offer.size == 311019


def test_what_is_not_there_or_not_for_others_is_not_sent() -> None:
    disk, _ = new_store()
    disk.put(f"{DIRECTORY}/{checkpoint_name(BOOTSTRAP_ID)}", checkpoint_bytes(BOOTSTRAP_ID))
    store = reopened(disk)
    assert store.infos[0].id == BOOTSTRAP_ID
    for checkpoint in (BOOTSTRAP_ID, ID):
        with pytest.raises(UnknownCheckpoint):
            store.offer(checkpoint)
        with pytest.raises(UnknownCheckpoint):
            store.read_chunk(checkpoint, 0, 10)
    data = write(store)
    for position in (-1, len(data), len(data) + 1):
        with pytest.raises(PositionOutOfRange):
            store.read_chunk(ID, position, 10)
    assert store.read_chunk(ID, len(data) - 1, 10).data == data[-1:]


# --- removing ----------------------------------------------------------------------------------------


def test_removed_checkpoints_are_gone_with_their_manifests() -> None:
    disk, store = new_store()
    ids = [CheckpointId(10, 1), CheckpointId(20, 1), CheckpointId(30, 2)]
    for checkpoint in ids:
        write(store, checkpoint)
    job = store.delete_job(ids[:2])
    assert [info.id for info in store.infos] == ids[2:]
    finish(job.run())
    disk.power_cut(CrashPolicy.NOTHING)
    assert disk.list_directory(DIRECTORY) == [
        checkpoint_name(ids[2]),
        manifest_name(ids[2]),
        "partition.metadata",
    ]


def test_newest_checkpoint_cannot_be_removed() -> None:
    _, store = new_store()
    write(store)
    with pytest.raises(InvariantViolation):
        store.delete_job([ID])
    assert [info.id for info in store.infos] == [ID]
