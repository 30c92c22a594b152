"""Logs in an object store: they are what they are on a disk, and what is wrong is said with the URI."""

import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files import storage
from quorate.pipeline.files.inputs import InputCluster, InputError, find_inputs
from quorate.pipeline.files.ranges import plan_log
from quorate.pipeline.files.tail import advance, first_place, readable_end
from quorate.pipeline.files.walk import read_range
from quorate.pipeline.jobs.other_states import manifest_digest
from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import NotShared, require_directory, write_part
from tests.object_store import ObjectStore, object_store
from tests.pipeline_logs import KAFKA_LOG


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """A bucket `logs` with the captured cluster's directory `m2`."""
    with object_store() as store:
        for name, value in store.variables.items():
            monkeypatch.setenv(name, value)
        upload(store, KAFKA_LOG, "logs/m2")
        storage.forget_stores()
        yield store
        storage.forget_stores()


def upload(store: ObjectStore, directory: Path, name: str) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            store.objects[f"{name}/{path.relative_to(directory)}"] = path.read_bytes()


def records_of(cluster: InputCluster) -> list[str]:
    """Every record that is no mass record, through tasks that cut segments."""
    ranges = [one for task in plan_log(cluster, range_bytes=100_000) for one in task.ranges]
    return [str(placed) for one in ranges for chunk in read_range(one) for placed in chunk.records()]


@pytest.mark.parametrize("uri", ["s3://logs/m2", "s3a://logs/m2/", "s3://logs/m2/__cluster_metadata-0"])
def test_directory_in_a_store_is_the_log_that_it_is_on_a_disk(store: ObjectStore, uri: str) -> None:
    (there,), (here,) = find_inputs([uri]), find_inputs([str(KAFKA_LOG)])

    assert there.cluster_id == here.cluster_id
    for files in ("segments", "checkpoints"):
        assert [(file.offset, file.epoch, file.size) for file in getattr(there, files)] == [
            (file.offset, file.epoch, file.size) for file in getattr(here, files)
        ]
    assert records_of(there) == records_of(here)
    assert all(str(file).startswith(uri.rstrip("/")) for file in (one.place for one in there.segments))
    assert manifest_digest(there.checkpoints[0]) is None


def test_archive_and_single_segment_in_a_store_are_read(store: ObjectStore, tmp_path: Path) -> None:
    for form, end in (("zip", "zip"), ("tar", "tar"), ("gztar", "tar.gz")):
        store.objects[f"logs/m2.{end}"] = Path(shutil.make_archive(str(tmp_path / "m2"), form, KAFKA_LOG)).read_bytes()
    (here,) = find_inputs([str(KAFKA_LOG)])

    for end in ("zip", "tar", "tar.gz"):
        (there,) = find_inputs([f"s3://logs/m2.{end}"])
        assert records_of(there) == records_of(here)
    (one,) = find_inputs([f"s3://logs/m2/__cluster_metadata-0/{Path(here.segments[1].name).name}"])
    assert [file.offset for file in one.segments] == [here.segments[1].offset]
    assert one.cluster_id == here.cluster_id


def test_log_of_a_store_is_followed_as_any_copy(store: ObjectStore) -> None:
    """There is no mark, so only where uncommitted records may be read."""
    (there,) = find_inputs(["s3://logs/m2"])

    with pytest.raises(InputError, match=r"s3://logs/m2/.* has no mark"):
        readable_end(there, uncommitted=False)
    assert advance(there, first_place(there, None), readable_end(there, uncommitted=True)).offset == 10_996


def test_damage_and_what_is_not_there_are_told_with_the_uri(store: ObjectStore) -> None:
    (name,) = (name for name in store.objects if name.endswith("00000000000000003849.log"))
    data = bytearray(store.objects[name])
    data[5_000] ^= 1
    store.objects[name] = bytes(data)
    with pytest.raises(StorageError, match=r"s3://logs/m2/.*3849\.log: damaged at byte"):
        records_of(find_inputs(["s3://logs/m2"])[0])
    for uri in ("s3://logs/nothing", "s3://elsewhere/log"):
        with pytest.raises(InputError, match=rf"^{uri}: no such file or directory"):
            find_inputs([uri])
    (there,) = find_inputs(["s3://logs/m2"])
    del store.objects[name]
    with pytest.raises(StorageError, match=r"3849\.log: no such file; if retention removed it meanwhile"):
        records_of(there)


def test_store_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store() as gone:
        variables = gone.variables
    for name, value in {**variables, "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    storage.forget_stores()
    with pytest.raises(StorageError, match=r"^s3://logs/m2: the store failed \(.*\)$"):
        find_inputs(["s3://logs/m2"])
    storage.forget_stores()


@pytest.mark.parametrize("uri", ["ftp://host/log", "dbfs:/log", "s3:/bucket/log", "http://host/x"])
def test_scheme_of_no_store_is_refused(uri: str) -> None:
    with pytest.raises(
        BadSetting, match=f"^{uri}: is neither a path nor a URI that can be read: those begin with file:"
    ):
        find_inputs([uri])


def test_results_in_a_store_are_whole_when_their_manifest_is_there(store: ObjectStore) -> None:
    """What is missing, or not finished, leaves nothing; a worker that sees another store writes nothing."""
    rows = pa.table({"number": list(range(100))})
    with ResultDirectory("s3://logs/out") as directory:
        require_directory(directory.staging)
        written = {"versions": write_part(rows, f"{directory.staging}/versions/part-0000.parquet")}
        assert "logs/out/manifest.json" not in store.objects
        directory.commit({"rows": 100}, written)
    assert sorted(name for name in store.objects if name.startswith("logs/out") and name[-1] != "/") == [
        "logs/out/manifest.json", "logs/out/versions/part-0000.parquet",
    ]  # fmt: skip
    assert pq.read_table(BytesIO(store.objects["logs/out/versions/part-0000.parquet"])).num_rows == 100
    with pytest.raises(StorageError, match=r"^s3://logs/out: holds something already"):
        ResultDirectory("s3://logs/out")

    with ResultDirectory("s3://logs/lost") as directory:
        written = {"versions": write_part(rows, f"{directory.staging}/versions/part-0000.parquet")}
        del store.objects["logs/lost/versions/part-0000.parquet"]
        with pytest.raises(NotShared, match=r"^s3://logs/lost: of the 1 files that workers wrote of versions 0"):
            directory.commit({}, written)
    with pytest.raises(NotShared, match=r"^s3://logs/lost: the driver has made this directory, and a worker does not"):
        require_directory("s3://logs/lost")
    assert not [name for name in store.objects if name.startswith("logs/lost") and name[-1] != "/"]
    with pytest.raises(BadSetting, match="Delta tables are written to the local file system only"):
        ResultDirectory("s3://logs/delta", TableFormat.DELTA)
