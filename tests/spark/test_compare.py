"""Two moments of a captured cluster, compared."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.comparing.page import compare_page
from pipeline.comparing.report import document, report
from pipeline.comparing.sides import Moment, NoState
from pipeline.errors import BadSetting
from pipeline.jobs.compare import Asked, Comparison, compare
from pipeline.jobs.history import HistoryOptions, make_history
from pipeline.table_clusters import WhichCluster
from pipeline.table_format import TableFormat
from tests.pipeline_logs import BEHEADED_LOG

SMALL_CLUSTER, LARGE_CLUSTER = "xnVrj2ZpTPOxSQQa-ebb-g", "CGX0FmftRoq9tiEOLU7vAA"

Compare = Callable[[int | None, int | None], Comparison]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, kafka_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two clusters, as Delta tables: those who read Parquet pass over their log."""
    target = tmp_path_factory.mktemp("compared") / "tables"
    logs = [str(kafka_data / "dynamic-small" / "m1" / "log"), str(BEHEADED_LOG)]
    make_history(spark, logs, target, HistoryOptions(mixed=True, table_format=TableFormat.DELTA))
    return target


def compared(spark: SparkSession, tables: Path, a: int | None, b: int | None, *, match_ids: bool = False) -> Comparison:
    """Two moments of the small cluster."""
    sides = (Asked(tables, Moment(at), SMALL_CLUSTER) for at in (a, b))
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
    lines = report(found.a, found.b, "name", found.kinds)
    assert "  + ants-4" in lines
    assert lines[-1] == "Different."
    assert document(found.a, found.b, "name", found.kinds)["equal"] is False
    assert "ants-4" in compare_page(found.a, found.b, found.kinds).render()


def test_a_topic_that_was_deleted_is_on_one_side_only(spark: SparkSession, tables: Path) -> None:
    """wasps lived from 42 to 52."""
    by_name = {kind.kind: kind for kind in compared(spark, tables, 49, None).kinds}

    assert by_name["topics"].counts == {"only_a": 1, "only_b": 0, "changed": 0}
    assert by_name["topics"].first[0]["key"] == {"topic": "wasps"}


def test_two_clusters_are_matched_by_name_or_by_id(spark: SparkSession, tables: Path) -> None:
    """By name ids and epochs are not compared."""
    sides = (Asked(tables, Moment(), SMALL_CLUSTER), Asked(tables, Moment(), LARGE_CLUSTER))

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


def test_side_of_several_clusters_must_say_which(spark: SparkSession, tables: Path) -> None:
    """And one that begins with a checkpoint has no state before it; the other has one from the first record on."""
    with pytest.raises(WhichCluster, match=rf"2 clusters \({LARGE_CLUSTER}, {SMALL_CLUSTER}\): .* --cluster-b"):
        compare(spark, Asked(tables, Moment(), SMALL_CLUSTER), Asked(tables, Moment()), match_ids=False, limit=3)
    early = Asked(tables, Moment(70), LARGE_CLUSTER)
    with pytest.raises(NoState, match="begins at offset 15719, behind offset 70; ask for a later one"):
        compare(spark, early, early, match_ids=False, limit=3)


def test_directory_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoState, match="holds no topic_versions; make the tables"):
        compared(spark, tmp_path, None, None)


def test_moment_that_is_none_is_refused() -> None:
    from pipeline.comparing.sides import moment

    assert moment("12") == Moment(offset=12)
    with pytest.raises(BadSetting, match="'yesterday' is no moment: give an offset, or a time"):
        moment("yesterday")
