"""Streams into tables: every offset once, however often a step is run again; damage is one sentence."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.pipeline.failures import translated
from quorate.pipeline.jobs.stream import StreamStep, follow
from quorate.pipeline.tables.stream_table import BrokenTable, StreamTable
from quorate.pipeline.tables.written import require_rows
from tests.pipeline_logs import KAFKA_LOG, LogWriter

Run = Callable[..., list[StreamStep]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Read what is there now into the table `tmp_path / "table"`."""

    def run(*paths: Path, max_records: int = 3000, mixed: bool = False) -> list[StreamStep]:
        steps: list[StreamStep] = []
        options = {"uncommitted": "true", "maxRecords": str(max_records), "mixed": str(mixed)}
        names = [str(path) for path in paths]
        follow(spark, names, tmp_path / "table", every_s=None, options=options, tell=steps.append)
        return steps

    return run


def offsets(table: Path, cluster_id: str | None = None) -> list[int]:
    """As any reader of Parquet sees the table."""
    found = ds.dataset(table, format="parquet").to_table(columns=["cluster_id", "offset"]).to_pylist()
    return sorted(row["offset"] for row in found if cluster_id in (None, row["cluster_id"]))


def test_stream_over_a_growing_log_goes_on_where_it_ended(run: Run, tmp_path: Path) -> None:
    """In steps of about what it may read; nothing new is no step."""
    log = LogWriter(tmp_path / "node")
    log.append_small(12)
    first = run(log.path, max_records=30)
    assert offsets(tmp_path / "table") == list(range(log.offset))
    assert len(first) > 1
    assert first[-1].lag == 0

    assert run(log.path) == []
    log.roll()
    log.append_small(3)
    run(log.path)
    assert offsets(tmp_path / "table") == list(range(log.offset))


def test_step_whose_rows_are_not_all_here_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers on a machine of their own would write theirs there: here, a file is lost behind Spark's back."""
    log = LogWriter(tmp_path / "node")
    log.append_small(12)

    def lose_then_count(table: str, rows: int) -> None:
        next(Path(table).glob("*.parquet")).unlink()
        require_rows(table, rows)

    monkeypatch.setattr("quorate.pipeline.tables.stream_table.require_rows", lose_then_count)
    with pytest.raises(PySparkException) as raised:
        run(log.path)

    assert re.search(r"of the \d+ rows that workers wrote \d+ are here: the workers do not share", str(raised.value))
    assert not list((tmp_path / "table").glob("chunk=*"))
    monkeypatch.undo()
    run(log.path)
    assert offsets(tmp_path / "table") == list(range(log.offset))


def test_step_that_spark_runs_again_is_in_the_table_once(run: Run, tmp_path: Path) -> None:
    """The process was killed after the step entered the table, before Spark noted it; another one, while it wrote."""
    log = LogWriter(tmp_path / "node")
    log.append_small(5)
    run(log.path)
    table = StreamTable(tmp_path / "table")
    (done,) = table.chunks()
    (table.checkpoint / "commits" / str(done.number)).unlink()
    (table.checkpoint / "commits" / f".{done.number}.crc").unlink(missing_ok=True)
    half = table.path / f"_writing-{done.number + 1}"
    half.mkdir()
    (half / "part-00000.parquet").write_bytes(b"PAR1 and no more")
    log.append_small(5)

    assert offsets(table.path) == list(range(done.ends["cluster-a"]))
    run(log.path)
    assert offsets(table.path) == list(range(log.offset))


def test_stream_follows_several_clusters_into_one_table(run: Run, tmp_path: Path) -> None:
    """Each with its own offsets."""
    log = LogWriter(tmp_path / "node")
    log.append_small(5)
    steps = run(KAFKA_LOG, log.path, mixed=True)

    assert offsets(tmp_path / "table", "cluster-a") == list(range(log.offset))
    assert len(offsets(tmp_path / "table")) == log.offset + 10996
    assert steps[-1].ends.keys() == steps[-1].latest.keys()


def test_damage_ends_the_stream_in_one_sentence(run: Run, tmp_path: Path) -> None:
    """What was before it is in the table, and stays."""
    log = LogWriter(tmp_path / "node")
    log.append_small(10)
    run(log.path)
    good = log.offset
    log.append_small(3)
    batch = next(one for one in iter_batches(find_files(log.path)[0]) if one.header.base_offset >= good)
    data = bytearray(log.segment.read_bytes())
    data[batch.position + 70] ^= 1
    log.segment.write_bytes(data)

    with pytest.raises(PySparkException) as caught:
        run(log.path)
    sentence = str(translated(caught.value))
    assert sentence.startswith(f"{log.segment}: damaged at byte {batch.position}, offset {good}: ")
    assert "\n" not in sentence
    assert offsets(tmp_path / "table") == list(range(good))


def test_log_that_tells_no_commit_point_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Unless the caller says that uncommitted records do no harm."""
    with pytest.raises(PySparkException) as caught:
        follow(spark, [str(KAFKA_LOG)], tmp_path / "table", every_s=None, options={}, tell=print)

    assert "nothing tells which of its records are committed; set the option uncommitted" in str(
        translated(caught.value)
    )


def test_step_that_does_not_go_on_where_the_table_ends_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A gap, or an offset twice, never enters a table."""
    table = StreamTable(tmp_path / "table")

    def rows(*found: int) -> object:
        return spark.createDataFrame([("c", offset) for offset in found], "cluster_id string, offset bigint")

    table.add(rows(0, 1, 2), 0)
    for wrong in ([4, 5], [2, 3], [3, 3], [3, 5]):
        with pytest.raises(BrokenTable, match="where 3 is due; the table is left as it was"):
            table.add(rows(*wrong), 1)
    assert table.add(rows(3), 1) is not None
    assert table.add(rows(3), 1) is None
    shutil.rmtree(table.path / "_writing-1", ignore_errors=True)
    assert offsets(table.path) == [0, 1, 2, 3]
