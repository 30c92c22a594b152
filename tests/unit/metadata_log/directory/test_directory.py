"""Formatting and opening metadata directories, and every way they can be the wrong ones."""

import shutil
from itertools import count
from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.batches.batch import iter_records, parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, check_checkpoint, checkpoint_name
from quorate.metadata_log.directory.directory import (
    BALLAST_BYTES,
    BALLAST_NAME,
    AlreadyFormatted,
    DamagedDirectory,
    DirectoryError,
    DirectoryInUse,
    ForeignDirectory,
    FormatPlan,
    ImportedFile,
    MetadataDirectory,
    NotFormatted,
    format_directory,
    is_formatted,
    voters_checkpoint,
)
from quorate.metadata_log.directory.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from quorate.metadata_log.directory.quorum_state import QuorumState, QuorumStateStore
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.ids import ZERO_UUID, uuid_text
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import (
    KRaftVersionFeature,
    SnapshotHeaderRecord,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk
from tests.default_parts import log_config
from tests.log_support import Crash

META = MetaProperties("Y2x1c3Rlci1vZi10ZXN0cw", 3000, b"directory-id-000")
ENDPOINTS = (VoterEndpoint("CONTROLLER", "localhost", 9093),)
VOTERS = VotersRecord((VotersVoter(3000, META.directory_id, ENDPOINTS, KRaftVersionFeature(0, 1)),))
PLAN = FormatPlan(META, bootstrap=b"bootstrap", voters=voters_checkpoint(VOTERS, 1_000), quorum_state=QuorumState(0))


def formatted(plan: FormatPlan = PLAN, seed: int = 0) -> MemoryDisk:
    disk = MemoryDisk(Random(seed))
    format_directory(disk, "/node", plan)
    return disk


def refusal(disk: MemoryDisk, node_id: int | None = None, cluster_id: str | None = None) -> DirectoryError:
    with pytest.raises(DirectoryError) as caught:
        MetadataDirectory.open(disk, "/node", node_id, cluster_id)
    return caught.value


# --- meta.properties ---------------------------------------------------------------------------------


def test_meta_properties_of_kafka_are_read(kafka_data: Path) -> None:
    path = kafka_data / "static/m4/log/meta.properties"
    meta = decode_meta_properties(path.read_bytes(), str(path))
    assert (meta.cluster_id, meta.node_id) == ("CGX0FmftRoq9tiEOLU7vAA", 2)
    assert uuid_text(meta.directory_id) == "c-zs332BZitRCtTOHdc_Kw"


@pytest.mark.parametrize(("source", "generation"), [(None, 0), ("CGX0FmftRoq9tiEOLU7vAA", 0), (None, 1004)])
def test_meta_properties_survive_a_round_trip(source: str | None, generation: int) -> None:
    meta = MetaProperties("some=cluster:id", 7, b"\xff" * 16, source, generation)
    assert decode_meta_properties(encode_meta_properties(meta), "f") == meta


def test_meta_properties_are_read_as_java_writes_them() -> None:
    text = b"#comment\n! other=comment\n\n node.id : 5\ncluster.id=a\\:b\\=c\r\nversion = 1\nunknown=x\n"
    assert decode_meta_properties(text, "f") == MetaProperties("a:b=c", 5, ZERO_UUID)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "version is missing"),
        ("version=0\nbroker.id=1\n", "version 0"),
        ("version=1\ncluster.id=x\n", "node.id is missing"),
        ("version=1\ncluster.id=x\nnode.id=1\nquorate.quorum.generation=-1\n", "generation is '-1'"),
        ("version=1\nnode.id=-1\ncluster.id=x\n", "node.id is '-1'"),
        ("version=1\nnode.id=1\n", "cluster.id is missing"),
        ("version=1\nnode.id=1\ncluster.id=x\ndirectory.id=short\n", "directory.id"),
    ],
)
def test_meta_properties_that_say_too_little_are_corrupt(text: str, reason: str) -> None:
    with pytest.raises(CorruptState, match=reason):
        decode_meta_properties(text.encode(), "f")


# --- formatting --------------------------------------------------------------------------------------


def test_formatted_directory_is_there_after_a_power_cut() -> None:
    disk = formatted()
    disk.power_cut(CrashPolicy.NOTHING)
    directory = MetadataDirectory.open(disk, "/node", 3000, META.cluster_id)
    assert directory.meta == META
    assert directory.bootstrap(disk) == b"bootstrap"
    assert not directory.is_short_of_space
    assert QuorumStateStore(disk, directory.log_path).load() == QuorumState(0)
    log = MetadataLog.open(disk, directory.log_path, log_config())
    assert (log.start_offset, log.end_offset, log.is_damaged) == (0, 0, False)
    assert [info.id for info in log.checkpoints_at_open.usable] == [BOOTSTRAP_ID]


def test_first_voter_set_has_the_form_of_kafkas(kafka_data: Path) -> None:
    path = kafka_data / "dynamic-small/m1/log/__cluster_metadata-0" / checkpoint_name(BOOTSTRAP_ID)
    theirs = path.read_bytes()
    ours = voters_checkpoint(VOTERS, 10**12)
    position = 0
    for data in (theirs, ours):
        header = next(iter_records(data)).record
        assert isinstance(header, SnapshotHeaderRecord)
        assert header.last_contained_log_timestamp == pytest.approx(parse_header(data).timestamp, abs=60_000)
        first = parse_header(data)
        kinds = [type(logged.record).__name__ for logged in iter_records(data)]
        assert kinds == ["SnapshotHeaderRecord", "KRaftVersionRecord", "VotersRecord"]
        position = first.size
        assert parse_header(data, position).base_offset == 3
        assert [type(logged.record).__name__ for logged in iter_records(data, position)] == ["SnapshotFooterRecord"]
    disk = formatted()
    name = f"/node/__cluster_metadata-0/{checkpoint_name(BOOTSTRAP_ID)}"
    assert check_checkpoint(disk, name, BOOTSTRAP_ID).size == len(ours)


def test_directory_of_a_node_that_joins_later_has_no_vote() -> None:
    disk = formatted(FormatPlan(META, None, None, quorum_state=None))
    directory = MetadataDirectory.open(disk, "/node")
    assert QuorumStateStore(disk, directory.log_path).load() is None
    assert directory.bootstrap(disk) is None


def test_formatting_again_is_refused_and_changes_nothing() -> None:
    disk = formatted()
    before = {path: disk.content(path) for path in disk.paths()}
    with pytest.raises(AlreadyFormatted, match="is formatted already, for node 3000"):
        format_directory(disk, "/node", FormatPlan(META, None, None, None))
    assert {path: disk.content(path) for path in disk.paths()} == before


def test_formatting_again_what_says_not_for_whom_tells_no_one_to_start_with_it() -> None:
    disk = formatted()
    disk.put("/node/meta.properties", b"#\n")
    with pytest.raises(AlreadyFormatted, match=r"meta.properties: .* is missing\); restore that file, or move"):
        format_directory(disk, "/node", FormatPlan(META, None, None, None))


def test_formatting_over_something_else_is_refused_and_changes_nothing() -> None:
    disk = MemoryDisk(Random(0))
    disk.put("/node/__cluster_metadata-0/00000000000000000000.log", b"precious")
    with pytest.raises(ForeignDirectory, match=r"holds .* but no meta.properties; move that away"):
        format_directory(disk, "/node", PLAN)
    assert disk.paths() == ["/node/__cluster_metadata-0/00000000000000000000.log"]


def test_formatting_with_imported_files_makes_a_node_that_starts_from_them(kafka_data: Path) -> None:
    source = kafka_data / "static/m4/log/__cluster_metadata-0"
    files = tuple(
        ImportedFile(path.name, lambda path=path: [path.read_bytes()])  # type: ignore[misc]
        for path in sorted(source.iterdir())
        if path.suffix in (".log", ".checkpoint")
    )
    plan = FormatPlan(META, None, None, QuorumState(3, data_version=0, current_voters=(1, 2, 3)), files)
    disk = formatted(plan)
    disk.power_cut(CrashPolicy.NOTHING)
    log = MetadataLog.open(disk, MetadataDirectory.open(disk, "/node").log_path, log_config())
    assert (log.start_offset, log.end_offset, log.last_epoch) == (15719, 21247, 3)


@pytest.mark.parametrize("policy", [None, CrashPolicy.NOTHING, CrashPolicy.MIXED], ids=str)
def test_crash_while_formatting_leaves_a_directory_that_is_formatted_or_can_be(policy: CrashPolicy | None) -> None:
    for last_call in count(1):
        disk = MemoryDisk(Random(last_call))
        left = last_call

        def step(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash

        disk.on_call = step
        try:
            format_directory(disk, "/node", PLAN)
            return
        except Crash:
            pass
        disk.on_call = lambda operation, path: None
        if policy is None:
            disk.kill()
        else:
            disk.power_cut(policy)
        if not is_formatted(disk, "/node"):
            with pytest.raises(NotFormatted):
                MetadataDirectory.open(disk, "/node")
            format_directory(disk, "/node", PLAN)
        directory = MetadataDirectory.open(disk, "/node", 3000)
        assert directory.bootstrap(disk) == b"bootstrap", f"crash at call {last_call}"
        assert QuorumStateStore(disk, directory.log_path).load() == QuorumState(0), f"crash at call {last_call}"
        # Whoever opened it may vote: nothing of it may go any more.
        disk.power_cut(CrashPolicy.NOTHING)
        assert MetadataDirectory.open(disk, "/node").meta == META, f"crash at call {last_call}"


# --- opening -----------------------------------------------------------------------------------------


def test_directory_that_does_not_exist_or_is_empty_is_not_formatted() -> None:
    disk = MemoryDisk(Random(0))
    assert isinstance(refusal(disk), NotFormatted)
    disk.make_directory("/node")
    assert isinstance(refusal(disk), NotFormatted)


def test_directory_of_another_node_or_cluster_is_named_with_both() -> None:
    disk = formatted()
    error = refusal(disk, node_id=3001)
    assert isinstance(error, ForeignDirectory)
    assert "belongs to node 3000, not to node 3001" in str(error)
    error = refusal(disk, cluster_id="other")
    assert isinstance(error, ForeignDirectory)
    assert "belongs to cluster Y2x1c3Rlci1vZi10ZXN0cw, not to other" in str(error)
    # A refusal holds nothing.
    MetadataDirectory.open(disk, "/node").close()


def test_damaged_directory_says_what_is_missing() -> None:
    disk = formatted()
    disk.put("/node/meta.properties", b"version=1\n")
    assert "node.id is missing" in str(refusal(disk))
    disk.unlink("/node/meta.properties")
    assert isinstance(refusal(disk), DamagedDirectory)
    disk = MemoryDisk(Random(0))
    disk.put("/node/meta.properties", encode_meta_properties(META))
    assert "has no __cluster_metadata-0" in str(refusal(disk))


def test_directory_in_use_is_refused_until_it_is_closed_or_its_process_ends() -> None:
    disk = formatted()
    first = MetadataDirectory.open(disk, "/node")
    assert isinstance(refusal(disk), DirectoryInUse)
    first.close()
    MetadataDirectory.open(disk, "/node")
    disk.kill()
    MetadataDirectory.open(disk, "/node")


def test_ballast_makes_room_for_a_vote_on_a_full_disk_and_comes_back() -> None:
    disk = formatted()
    disk.capacity = sum(len(disk.content(path)) for path in disk.paths())
    directory = MetadataDirectory.open(disk, "/node")
    assert directory.is_short_of_space
    assert not disk.exists(f"/node/{BALLAST_NAME}")
    MetadataLog.open(disk, directory.log_path, log_config())
    for _ in QuorumStateStore(disk, directory.log_path).write_job(QuorumState(9, voted_id=1)).run():
        pass
    directory.close()
    disk.capacity = None
    assert not MetadataDirectory.open(disk, "/node").is_short_of_space
    assert len(disk.content(f"/node/{BALLAST_NAME}")) == BALLAST_BYTES


def test_directory_of_kafka_opens_on_a_real_disk(kafka_data: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka_data / "dynamic-small/m1/log", tmp_path / "node")
    directory = MetadataDirectory.open(RealDisk(), str(tmp_path / "node"), 2, "xnVrj2ZpTPOxSQQa-ebb-g")
    with pytest.raises(DirectoryInUse):
        MetadataDirectory.open(RealDisk(), str(tmp_path / "node"))
    log = MetadataLog.open(RealDisk(), directory.log_path, log_config())
    assert (log.start_offset, log.end_offset, log.last_epoch) == (0, 77, 2)
    log.close()
    directory.close()
    MetadataDirectory.open(RealDisk(), str(tmp_path / "node")).close()


def test_formatting_works_on_a_real_disk(tmp_path: Path) -> None:
    format_directory(RealDisk(), f"{tmp_path}/node/", PLAN)
    directory = MetadataDirectory.open(RealDisk(), f"{tmp_path}/node", 3000)
    assert (tmp_path / "node" / "__cluster_metadata-0" / "partition.metadata").read_bytes() == (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    directory.close()
