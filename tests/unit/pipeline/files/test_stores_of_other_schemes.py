"""Stores that are no S3: how their URIs are understood, and that nothing takes a store for S3 or for a disk."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files import storage
from quorate.pipeline.files.inputs import InputCluster, InputError, find_inputs
from quorate.pipeline.files.ranges import all_ranges, plan_log
from quorate.pipeline.files.walk import read_range
from quorate.pipeline.tables.result_directory import ResultDirectory
from quorate.pipeline.tables.table_reading import read_table, table_files
from quorate.pipeline.tables.written import NotShared, require_directory, write_part
from tests.pipeline_logs import KAFKA_LOG

PLACE = "abfs://container@account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("uri", "kind", "key"),
    [
        ("gs://bucket/a/b", "gcs", "bucket/a/b"),
        ("gs://anonymous@bucket/a", "gcs", "bucket/a"),
        (f"{PLACE}/a/b", "abfs", "container/a/b"),
        ("abfss://container@account.dfs.core.windows.net/", "abfs", "container"),
    ],
)
def test_uri_names_a_store_and_what_it_calls_the_file(uri: str, kind: str, key: str) -> None:
    """Clients are made without a network; a bucket, or a container, is the first part of each name."""
    storage.forget_stores()
    with storage.opened(storage.checked(uri)) as (store, found):
        assert (store.type_name, found) == (kind, key)


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        (
            "hdfs://node:8020/log",
            r"the store failed \(.{1,310}\); Hadoop's client is needed: JAVA_HOME",
        ),
        ("abfs://container/log", r"the store failed \(.{1,310}\); a URI is abfs://CONTAINER@ACCOUNT\.dfs\.core\.win"),
        ("gs://anonymous@bucket/log", r"the store failed \(.{1,310}\)$"),
    ],
)
def test_store_that_cannot_be_reached_is_told_in_a_sentence(
    uri: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients' own words go on for pages; Google's tries again for a quarter of an hour."""
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(storage, "_RETRY_SECONDS", 1)
    storage.forget_stores()
    with pytest.raises(StorageError, match=rf"^{uri}: {sentence}"):
        find_inputs([uri])
    storage.forget_stores()


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with directories that are there by themselves, as Azure's and Hadoop's, and names of its own."""
    store = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    monkeypatch.setattr(storage, "_store", lambda *_: (store, "container/"))
    return tmp_path / "container"


def records_of(cluster: InputCluster) -> list[str]:
    ranges = all_ranges(plan_log(cluster))
    return [str(one) for part in ranges for chunk in read_range(part) for one in chunk.records()]


def test_logs_in_any_store_are_those_of_a_disk(container: Path) -> None:
    shutil.copytree(KAFKA_LOG, container / "m2")

    (there,), (here,) = find_inputs([f"{PLACE}/m2"]), find_inputs([str(KAFKA_LOG)])

    assert there.cluster_id == here.cluster_id
    assert records_of(there) == records_of(here)
    with pytest.raises(InputError, match=rf"^{PLACE}/gone: no such file or directory"):
        find_inputs([f"{PLACE}/gone"])


def test_tables_in_any_store_are_those_of_a_disk(
    container: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    rows, out = pa.table({"number": list(range(100)), "name": ["one"] * 100}), f"{PLACE}/out"

    with ResultDirectory(out) as directory:
        require_directory(directory.staging)
        written = {"versions": write_part(rows, f"{directory.staging}/versions/day=1970-01-01/part-0000.parquet")}
        directory.commit({}, written)

    assert list(table_files(f"{out}/versions").values()) == [written["versions"].size]
    assert read_table(f"{out}/versions", rows.column_names).equals(rows)
    with pytest.raises(StorageError, match=rf"^{out}: holds something already"):
        ResultDirectory(out)
    with ResultDirectory(f"{PLACE}/lost") as lost, pytest.raises(NotShared, match=rf"^{PLACE}/lost: of the 1 files"):
        lost.commit({}, written)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"container/out/manifest.json", "container/out/versions/day=1970-01-01/part-0000.parquet"}
