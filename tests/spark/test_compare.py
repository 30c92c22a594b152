"""Two moments of a captured cluster, compared."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.pipeline.comparing import differences
from quorate.pipeline.comparing.entries import ENTRY_KINDS
from quorate.pipeline.comparing.page import compare_page
from quorate.pipeline.comparing.report import document, report
from quorate.pipeline.comparing.rows import ComparedMoment
from quorate.pipeline.errors import BadSetting, PipelineError
from quorate.pipeline.files.inputs import InputError
from quorate.pipeline.history.plan import HistoryOptions
from quorate.pipeline.jobs.compare import StateComparison, compare
from quorate.pipeline.jobs.compared_sides import NoState, RequestedSide, moment, state_of
from quorate.pipeline.jobs.history import make_history
from quorate.pipeline.jobs.replay import ReplayOptions, replay
from quorate.pipeline.tables.table_clusters import WhichCluster
from quorate.pipeline.tables.table_format import TableFormat
from tests.pipeline_logs import BEHEADED_LOG

SMALL_CLUSTER, LARGE_CLUSTER = "xnVrj2ZpTPOxSQQa-ebb-g", "CGX0FmftRoq9tiEOLU7vAA"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, kafka_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two clusters, as Delta tables: those who read Parquet pass over their log."""
    target = tmp_path_factory.mktemp("compared") / "tables"
    logs = [str(kafka_data / "dynamic-small" / "m1" / "log"), str(BEHEADED_LOG)]
    make_history(spark, logs, target, HistoryOptions(mixed=True, table_format=TableFormat.DELTA))
    return target


def compared(
    spark: SparkSession, tables: Path, a: int | None, b: int | None, *, match_ids: bool = False
) -> StateComparison:
    """Two moments of the small cluster."""
    sides = (RequestedSide(str(tables), ComparedMoment(at), SMALL_CLUSTER) for at in (a, b))
    return compare(spark, *sides, match_ids=match_ids, limit=50)


def test_a_moment_equals_itself(spark: SparkSession, tables: Path) -> None:
    found = compared(spark, tables, 70, 70)

    assert found.is_equal
    assert [kind.rows_a for kind in found.kinds][:2] == [2, 8]


def test_what_happened_in_between_is_told_field_by_field(spark: SparkSession, tables: Path) -> None:
    """Between 52 and the end (timeline): ants got a fifth partition, and broker 12 died."""
    found = compared(spark, tables, 52, None)
    kinds = {kind.kind: kind for kind in found.kinds}

    assert not found.is_equal
    assert kinds["topics"].is_equal
    assert kinds["partitions"].counts["only_b"] == 1
    assert [one["key"] for one in kinds["partitions"].first if one["change"] == "only_b"] == [
        {"topic": "ants", "partition": 4}
    ]
    fenced = [one for one in kinds["brokers"].first if one["field"] == "fenced"]
    assert fenced == [{"key": {"broker_id": 12}, "change": "changed", "field": "fenced", "old": "false", "new": "true"}]
    leaders = [one for one in kinds["partitions"].first if one["field"] == "leader"]
    assert {one["old"] for one in leaders} == {"12"}
    told = (found.a, found.b, "name", found.kinds, found.not_compared)
    lines = report(*told)
    assert "  + ants-4" in lines
    assert lines[-1] == "Different."
    assert lines[-2].startswith("Not compared, for tables of history do not hold them: quotas, acls, credentials")
    assert document(*told)["equal"] is False
    assert "ants-4" in compare_page(found.a, found.b, found.kinds, found.not_compared).render()


def test_a_topic_that_was_deleted_is_on_one_side_only(spark: SparkSession, tables: Path) -> None:
    """wasps lived from 42 to 52."""
    by_name = {kind.kind: kind for kind in compared(spark, tables, 49, None).kinds}

    assert by_name["topics"].counts == {"only_a": 1, "only_b": 0, "changed": 0}
    assert by_name["topics"].first[0]["key"] == {"topic": "wasps"}


def test_two_clusters_are_matched_by_name_or_by_id(spark: SparkSession, tables: Path) -> None:
    """By name ids and epochs are not compared."""
    sides = (
        RequestedSide(str(tables), ComparedMoment(), SMALL_CLUSTER),
        RequestedSide(str(tables), ComparedMoment(), LARGE_CLUSTER),
    )

    by_name = {kind.kind: kind for kind in compare(spark, *sides, match_ids=False, limit=3).kinds}
    by_id = {kind.kind: kind for kind in compare(spark, *sides, match_ids=True, limit=3).kinds}

    assert by_name["topics"].compared == ()
    assert by_name["topics"].counts["changed"] == 0
    assert by_name["topics"].rows_a == by_name["topics"].counts["only_a"] == 2
    assert "leader_epoch" not in by_name["partitions"].compared
    assert "leader_epoch" in by_id["partitions"].compared
    assert by_id["partitions"].by_field == {}
    assert len(by_name["partitions"].first) == 3
    same = [one for one in by_name["brokers"].first if one["change"] == "changed"]
    assert {one["field"] for one in same} <= set(by_name["brokers"].by_field)


def test_large_tables_are_read_and_compared_in_parts(
    spark: SparkSession, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file a task, and some places where keys meet: it comes to the same."""
    sides = (
        RequestedSide(str(tables), ComparedMoment(17_000), LARGE_CLUSTER),
        RequestedSide(str(tables), ComparedMoment(), LARGE_CLUSTER),
    )
    at_once = compare(spark, *sides, match_ids=False, limit=300)
    monkeypatch.setattr(differences, "_TASK_BYTES", 1)
    monkeypatch.setattr(differences, "_PLACE_BYTES", 30_000)

    assert compare(spark, *sides, match_ids=False, limit=300) == at_once
    assert {kind.kind: kind.counts for kind in at_once.kinds}["partitions"] == {
        "only_a": 253,
        "only_b": 15,
        "changed": 2014,
    }


def test_side_of_several_clusters_must_say_which(spark: SparkSession, tables: Path) -> None:
    """And one that begins with a checkpoint has no state before it; the other has one from the first record on."""
    with pytest.raises(WhichCluster, match=rf"2 clusters \({LARGE_CLUSTER}, {SMALL_CLUSTER}\): .* --cluster-b"):
        compare(
            spark,
            RequestedSide(str(tables), ComparedMoment(), SMALL_CLUSTER),
            RequestedSide(str(tables), ComparedMoment()),
            match_ids=False,
            limit=3,
        )
    early = RequestedSide(str(tables), ComparedMoment(70), LARGE_CLUSTER)
    with pytest.raises(NoState, match="begins at offset 15719, after offset 70; ask for a later one"):
        compare(spark, early, early, match_ids=False, limit=3)


def test_logs_and_tables_of_a_state_are_sides_too(
    spark: SparkSession, tables: Path, kafka_data: Path, tmp_path: Path
) -> None:
    """The log at 47 beside its state at 60, which has a quota's two values (47..49) and a credential (49) more."""
    log, state = kafka_data / "dynamic-small/m1/log", tmp_path / "state"
    replay(spark, [str(log)], state, ReplayOptions(at=60))

    found = compare(
        spark,
        RequestedSide(str(log), ComparedMoment(47)),
        RequestedSide(str(state), ComparedMoment(60)),
        match_ids=False,
        limit=9,
    )
    same = compare(
        spark,
        RequestedSide(str(state), ComparedMoment()),
        RequestedSide(str(tables), ComparedMoment(60), SMALL_CLUSTER),
        match_ids=False,
        limit=9,
    )

    kinds = {kind.kind: kind for kind in found.kinds}
    assert found.not_compared == ()
    assert (found.a.moment, found.b.moment) == ("offset 47", "offset 60")
    assert [kinds["quotas"].counts["only_b"], kinds["credentials"].counts["only_b"]] == [2, 1]
    assert kinds["quotas"].first[0]["key"]["entity"] == "user=u1"
    assert kinds["topics"].first[0]["key"] == {"topic": "wasps"}
    assert kinds["features"].is_equal
    assert kinds["features"].rows_a > 0
    assert (same.is_equal, same.not_compared) == (True, tuple(kind.name for kind in ENTRY_KINDS))
    with pytest.raises(NoState, match="state: holds the state at offset 60 alone"):
        compare(
            spark,
            RequestedSide(str(log), ComparedMoment(47)),
            RequestedSide(str(state), ComparedMoment(61)),
            match_ids=False,
            limit=9,
        )
    with pytest.raises(WhichCluster, match=f"hold no cluster other: they hold {SMALL_CLUSTER}"):
        state_of(spark, RequestedSide(str(state), ComparedMoment(), "other"), tmp_path, "--cluster-a")


def test_checkpoint_is_the_state_that_it_holds(spark: SparkSession, kafka_data: Path, tmp_path: Path) -> None:
    """And no other moment's."""
    log = kafka_data / "dynamic-small/m1/log" / LOG_DIRECTORY_NAME
    shutil.copy(log / "00000000000000000073-0000000002.checkpoint", tmp_path)
    (file,) = tmp_path.iterdir()

    held = state_of(
        spark, RequestedSide(str(file), ComparedMoment(), SMALL_CLUSTER), tmp_path / "scratch", "--cluster-a"
    )

    assert (held.cluster_id, held.moment) == (SMALL_CLUSTER, "the end, offset 73")
    assert set(held.tables["topics"].read(["topic"])["topic"].to_pylist()) == {"ants", "bees"}
    with pytest.raises(InputError, match="add the segments from offset 73 on, or ask for offset 73"):
        state_of(spark, RequestedSide(str(file), ComparedMoment(77)), tmp_path / "other", "--cluster-a")


def test_side_that_holds_no_such_state_is_refused(
    spark: SparkSession, tables: Path, kafka_data: Path, tmp_path: Path
) -> None:
    """What is no log and no tables, and moments that are not reached."""
    text, half, scratch = tmp_path / "text", tmp_path / "half", tmp_path / "scratch"
    text.write_text("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt.")
    (half / "partition_versions").mkdir(parents=True)
    log = kafka_data / "dynamic-small/m1/log"
    early = ComparedMoment(time=datetime(2020, 1, 1, tzinfo=UTC))

    for asked, problem in (
        (
            RequestedSide(str(text), ComparedMoment()),
            r"text: is neither a segment nor a checkpoint .*\(a side is a log, a checkpoint, or",
        ),
        (
            RequestedSide(str(tmp_path), ComparedMoment()),
            r"holds no segment .*\(a side is a log, a checkpoint, or tables of history",
        ),
        (RequestedSide(str(tmp_path / "gone"), ComparedMoment()), "gone: no such file or directory"),
        (RequestedSide(str(half), ComparedMoment()), "half: holds no topic_versions; make the tables"),
        (RequestedSide(str(log), ComparedMoment(1000)), "the log ends at offset 77, before 1000"),
        (
            RequestedSide(str(tables), ComparedMoment(1000), SMALL_CLUSTER),
            "ends at offset 77, before offset 1000; ask for an offset up to",
        ),
        (
            RequestedSide(str(tables), early, LARGE_CLUSTER),
            r"begins at 2026-11-21T.*, after 2020-01-01T.*; ask for a later time",
        ),
    ):
        with pytest.raises(PipelineError, match=problem):
            state_of(spark, asked, scratch, "--cluster-a")
    assert not scratch.exists()


def test_moment_that_is_none_is_refused() -> None:

    assert moment("12") == ComparedMoment(offset=12)
    with pytest.raises(BadSetting, match="'yesterday' is no moment: give an offset, or a time"):
        moment("yesterday")
