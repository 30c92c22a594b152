"""Which files a path stands for, and what is refused."""

import gzip
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from quorate.metadata_log.directory.meta_properties import decode_meta_properties
from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files.archives import FILE_BYTES_MAX, FileLocation, open_place
from quorate.pipeline.files.inputs import InputCluster, InputError, find_inputs
from quorate.pipeline.files.replay_bases import replay_base, require_offset
from tests.pipeline_logs import BEHEADED_LOG, KAFKA_LOG, LogWriter


def only(*paths: Path, cluster_id: str | None = None) -> InputCluster:
    (cluster,) = find_inputs([str(path) for path in paths], cluster_id=cluster_id)
    return cluster


def names(cluster: InputCluster) -> list[str]:
    return [Path(file.place.member or file.place.path).name for file in cluster.segments + cluster.checkpoints]


def log_of(path: Path, *, cluster_id: str | None = "cluster-a", segments: int = 3) -> LogWriter:
    log = LogWriter(path, cluster_id)
    for index in range(segments):
        if index:
            log.roll()
        log.append_small(5)
    return log


def pack_zip(source: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(source.rglob("*")):
            archive.write(file, str(file.relative_to(source.parent)))
    return path


def pack_tar(source: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        archive.add(source, source.name)
    return path


def read_all(place: FileLocation) -> None:
    with open_place(place) as stream:
        while stream.read(10_000):
            pass


def test_metadata_directory_of_kafka_gives_its_files_and_cluster() -> None:
    """The directory and the log's directory in it are the same input."""
    cluster = only(KAFKA_LOG)
    meta = decode_meta_properties((KAFKA_LOG / "meta.properties").read_bytes(), "")

    assert cluster.cluster_id == meta.cluster_id
    assert [file.offset for file in cluster.segments] == [0, 1758, 3849, 6909, 9454]
    assert [file.offset for file in cluster.checkpoints] == [2781, 6907, 10993]
    assert cluster.mark is None
    assert only(KAFKA_LOG / "__cluster_metadata-0").segments == cluster.segments


def test_single_segment_gives_a_cluster_of_its_directory() -> None:
    """Its meta.properties lies one directory up."""
    cluster = only(KAFKA_LOG / "__cluster_metadata-0" / "00000000000000001758.log")

    assert (cluster.cluster_id, names(cluster)) == (only(KAFKA_LOG).cluster_id, ["00000000000000001758.log"])


def test_renamed_segment_is_known_by_its_first_header(tmp_path: Path) -> None:
    """People copy files under names of their own."""
    path = tmp_path / "copied.bin"
    shutil.copy(KAFKA_LOG / "__cluster_metadata-0" / "00000000000000001758.log", path)

    assert only(path).first_offset == 1758


def test_cluster_without_properties_is_named_by_option_or_directory(tmp_path: Path) -> None:
    """Neither files nor names decide where a meta.properties says it."""
    log_of(tmp_path / "mine", cluster_id=None)

    assert only(tmp_path / "mine").cluster_id == "mine"
    assert only(tmp_path / "mine", cluster_id="theirs").cluster_id == "theirs"


def test_large_tar_is_refused_only_where_it_is_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task would unpack it from its start; in a plain one a member is found at once."""
    monkeypatch.setattr("quorate.pipeline.files.archives.COMPRESSED_TAR_BYTES_MAX", 100)
    name = f"{0:020d}.log"
    (tmp_path / name).write_bytes(bytes(200))
    with tarfile.open(tmp_path / "plain.tar", "w") as archive:
        archive.add(tmp_path / name, name)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / name, name)

    (cluster,) = find_inputs([str(tmp_path / "plain.tar")])
    with open_place(cluster.segments[0].place) as stream:
        assert stream.read(300) == bytes(200)
    with pytest.raises(StorageError, match=r"packed\.tar\.gz: holds more than 100 bytes in a compressed tar"):
        find_inputs([str(tmp_path / "packed.tar.gz")])


@pytest.mark.parametrize("pack", [pack_zip, pack_tar])
def test_archive_of_a_directory_is_read_as_the_directory(tmp_path: Path, pack: object) -> None:
    """Same files, same cluster, same bytes."""
    log = log_of(tmp_path / "node")
    name = "old.zip" if pack is pack_zip else "old.tar.gz"
    packed = only(pack(tmp_path / "node", tmp_path / name))  # type: ignore[operator]
    plain = only(tmp_path / "node")

    assert (packed.cluster_id, names(packed)) == ("cluster-a", names(plain))
    with open_place(packed.segments[1].place) as stream:
        assert stream.read(FILE_BYTES_MAX) == (log.directory / names(plain)[1]).read_bytes()


def test_gzipped_segment_is_read_as_the_segment(tmp_path: Path) -> None:
    """By itself, and beside others in a directory."""
    log = log_of(tmp_path / "node")
    segment = log.directory / names(only(tmp_path / "node"))[0]
    packed = segment.with_name(f"{segment.name}.gz")
    packed.write_bytes(gzip.compress(segment.read_bytes()))
    segment.unlink()

    assert next(file.offset for file in only(tmp_path / "node").segments) == 0
    assert only(packed).segments[0].size > 61


def test_copy_of_a_shorter_segment_is_not_read_twice(tmp_path: Path) -> None:
    """An archive of yesterday holds the beginning of today's newest segment."""
    log = log_of(tmp_path / "node")
    shutil.copytree(tmp_path / "node", tmp_path / "yesterday")
    log.append_small(3)

    sizes = [file.size for file in only(tmp_path / "node").segments]

    assert [file.size for file in only(tmp_path / "yesterday", tmp_path / "node").segments] == sizes
    assert [file.size for file in only(tmp_path / "node", tmp_path / "yesterday").segments] == sizes


def test_different_segments_of_one_name_are_refused(tmp_path: Path) -> None:
    """Two nodes' directories are two logs, however alike."""
    log_of(tmp_path / "a")
    other = LogWriter(tmp_path / "b", "cluster-a")
    other.epoch = 2
    other.append_small(5)

    with pytest.raises(InputError, match=r"b/.*log: and .*a/.*log are different segments of one name, at offset 0; "):
        find_inputs([str(tmp_path / "a"), str(tmp_path / "b")])


def test_several_clusters_need_the_option_mixed(tmp_path: Path) -> None:
    """The error names both."""
    log_of(tmp_path / "a")
    log_of(tmp_path / "b", cluster_id="cluster-b")
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]

    with pytest.raises(InputError, match=r"is of cluster cluster-b, while .* is of cluster-a; .* option mixed"):
        find_inputs(paths)
    assert [cluster.cluster_id for cluster in find_inputs(paths, mixed=True)] == ["cluster-a", "cluster-b"]


def test_path_of_another_cluster_than_the_option_says_is_refused(tmp_path: Path) -> None:
    """The option never overrides what the node wrote."""
    log_of(tmp_path / "a")

    with pytest.raises(InputError, match="is of cluster cluster-a, not of other"):
        only(tmp_path / "a", cluster_id="other")


def test_missing_path_is_refused_by_name(tmp_path: Path) -> None:
    """As is a path list without a path."""
    with pytest.raises(InputError, match="nothing-here: no such file or directory; give"):
        only(tmp_path / "nothing-here")
    with pytest.raises(InputError, match="/dev/null: neither a regular file nor a directory; give"):
        only(Path("/dev/null"))
    with pytest.raises(InputError, match="nothing to read"):
        find_inputs([])


def test_empty_directory_is_refused_by_name(tmp_path: Path) -> None:
    """An archive without files of a log, too."""
    (tmp_path / "empty").mkdir()

    with pytest.raises(InputError, match="empty: holds no segment"):
        only(tmp_path / "empty")
    with pytest.raises(InputError, match=r"e.zip: holds no segment"):
        only(pack_zip(tmp_path / "empty", tmp_path / "e.zip"))


def test_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    """A broken archive, and a text."""
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 no more")
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(StorageError, match=r"broken.zip: the archive cannot be read"):
        only(tmp_path / "broken.zip")
    with pytest.raises(InputError, match=r"notes.txt: is neither a segment nor a checkpoint"):
        only(tmp_path / "notes.txt")


def test_stream_that_expands_beyond_a_segment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is unpacked to disk, and no file of a log is that large."""
    path = tmp_path / "00000000000000000000.log.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))
    monkeypatch.setattr("quorate.pipeline.files.archives.FILE_BYTES_MAX", 50_000)

    place = only(path).segments[0].place

    with pytest.raises(StorageError, match="expands to more than"):
        read_all(place)


# --- what a replay begins with ------------------------------------------------------------------------


def test_replay_begins_at_the_newest_checkpoint_before_the_offset() -> None:
    """Or at 0 where there is none so early."""
    cluster = only(KAFKA_LOG)

    assert replay_base(cluster).first_offset == 10993
    assert replay_base(cluster, 6907).first_offset == 6907
    early = replay_base(cluster, 2780)
    assert (early.checkpoint, early.first_offset) == (None, 0)


def test_beheaded_log_is_replayed_from_its_checkpoint_only() -> None:
    """What was asked for before that is refused, with the offset where the log begins."""
    cluster = only(BEHEADED_LOG)

    assert replay_base(cluster).first_offset == 15719
    with pytest.raises(InputError, match=r"12538.log: the log begins at offset 12538, and there is no checkpoint for"):
        replay_base(cluster, 15000)
    with pytest.raises(InputError, match="the log begins at offset 12538, after the offset 12000 asked for"):
        require_offset(cluster, 12000)
    require_offset(cluster, 12538)


def test_checkpoint_without_its_tail_is_refused(tmp_path: Path) -> None:
    """Unless the state at its very end is asked for."""
    log = log_of(tmp_path / "node")
    log.checkpoint(log.offset)
    for segment in log.directory.glob("*.log"):
        segment.unlink()
    cluster = only(tmp_path / "node")

    assert replay_base(cluster, log.offset).first_offset == log.offset
    with pytest.raises(InputError, match=f"is a checkpoint at offset {log.offset} without its tail; add the segments"):
        replay_base(cluster)


def test_gap_between_checkpoint_and_log_is_refused(tmp_path: Path) -> None:
    """The records in between are nowhere."""
    log = log_of(tmp_path / "node")
    log.checkpoint(1)
    first, *_ = sorted(log.directory.glob("*.log"))
    first.unlink()

    with pytest.raises(InputError, match="but its newest checkpoint to begin with ends at 1; add the segments"):
        replay_base(only(tmp_path / "node"))
