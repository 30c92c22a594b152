"""The captured cluster's incidents against the list of what was done to it (static/timeline.json)."""

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as pads
import pytest
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.history.plan import HistoryOptions
from quorate.pipeline.incidents import search
from quorate.pipeline.incidents.reading import NoHistoryTables
from quorate.pipeline.incidents.stretch import OtherStretch
from quorate.pipeline.incidents.tables import TABLES
from quorate.pipeline.incidents.telling.page import incidents_page
from quorate.pipeline.incidents.telling.report import document, report
from quorate.pipeline.incidents.telling.severity import severity
from quorate.pipeline.jobs.history import make_history
from quorate.pipeline.jobs.incidents import IncidentsFound, find_incidents, write_tables
from quorate.snapshots.checkpoints.stretches import stretches_of
from quorate.snapshots.incidents.reading.log_versions import read_versions
from quorate.snapshots.incidents.serial.search import search as search_serially
from quorate.snapshots.incidents.telling.incident import Incident
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.thresholds import Thresholds
from tests.guards.patching import patching
from tests.pipeline_logs import BEHEADED_LOG, KAFKA_LOG

THRESHOLDS = Thresholds(slow_reassignment=timedelta(seconds=10), flaps=1)


@pytest.fixture(scope="module")
def found(spark: SparkSession, kafka_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IncidentsFound]:
    """In several tasks and buckets, though there is little of it."""
    tables = tmp_path_factory.mktemp("history") / "tables"
    log = whole_log(kafka_data / "static", tmp_path_factory.mktemp("whole"))
    make_history(spark, [str(log)], tables, HistoryOptions(bucket_bytes=1_000_000))
    with patching() as patch:
        patch.setattr(search, "BUCKET_BYTES", 100_000)
        patch.setattr(search, "TASK_BYTES", 50_000)
        with find_incidents(spark, tables, [str(log)], THRESHOLDS) as incidents_found:
            yield incidents_found


def whole_log(capture: Path, target: Path) -> Path:
    """All segments there ever were: the third moment's, and the fourth's, which go on."""
    shutil.copy(capture / "m4" / "log" / "meta.properties", target)
    (target / "__cluster_metadata-0").mkdir()
    for moment in ("m3", "m4"):
        for segment in (capture / moment / "log" / "__cluster_metadata-0").glob("*.log"):
            shutil.copy(segment, target / "__cluster_metadata-0")
    return target


def only(found: IncidentsFound, kind: str, broker: int | None = None) -> Incident:
    """The one incident of a kind, of a broker."""
    (incident,) = of_kind(found, kind, broker)
    return incident


def of_kind(found: IncidentsFound, kind: str, broker: int | None = None) -> list[Incident]:
    return [one for one in found.incidents if one.kind == kind and (broker is None or broker in one.brokers)]


@pytest.mark.parametrize(
    ("broker", "first", "fenced", "back", "partitions", "dropped"),
    [(14, 3849, 5385, 12526, 1536, 3), (13, 9454, 10992, 14079, 1538, 778)],
)
def test_killed_brokers_crashed(
    found: IncidentsFound, broker: int, first: int, fenced: int, back: int, partitions: int, dropped: int
) -> None:
    """Node 14 got SIGKILL at 3346 and was seen fenced at 9442; node 13 at 9451 and 10993."""
    crash = only(found, "broker_crash", broker)

    assert (crash.from_offset, crash.cause, crash.cause_offset) == (first, "broker_fenced", fenced)
    assert (crash.to_offset, crash.partitions, crash.is_open) == (back, partitions, False)
    assert crash.details["dropped_from_elr"] == dropped
    assert "had not stopped cleanly" in crash.text


def test_partitions_lost_their_leaders_with_the_second_broker(found: IncidentsFound) -> None:
    """ur, stuck and 777 others had their last member in 13; single.replica-1 was on 14 alone."""
    rows = [
        (one.brokers, one.partitions, one.cause_offset, one.details["ended_by"]) for one in of_kind(found, "leaderless")
    ]

    assert sorted(rows) == [
        ((13,), 4, 10992, "unclean_election"),
        ((13,), 777, 10992, "last_known_leader_election"),
        ((14,), 1, 5385, "last_known_leader_election"),
    ]


def test_unclean_elections_are_told_from_those_that_were_asked_for(found: IncidentsFound) -> None:
    """ur-0 and ur-1 by themselves when 14 came back; stuck-0 and stuck-1 by a command (13290..13292)."""
    of_itself, asked_for = of_kind(found, "unclean_election")

    assert (of_itself.from_offset, of_itself.to_offset, of_itself.cause) == (12528, 12529, "broker_returned")
    assert (asked_for.from_offset, asked_for.to_offset, asked_for.cause) == (13290, 13291, "operator")
    for election in (of_itself, asked_for):
        assert [one["broker"] for one in election.details["ahead"]] == [13]
        assert election.details["exposed_ms"] == 19_252  # between 14's fencing and 13's


def test_last_known_leaders_came_back_with_their_brokers(found: IncidentsFound) -> None:
    rows = [(one.from_offset, one.brokers, one.partitions, one.cause_offset)
            for one in of_kind(found, "last_known_leader_election")]  # fmt: skip

    assert rows == [(12527, (14,), 1, 12526), (14080, (13,), 777, 14079)]


def test_controllers_took_over_twice(found: IncidentsFound) -> None:
    """Node 1 got SIGKILL at 17539; all three were restarted one after the other at 21154."""
    rows = [(one.from_offset, one.details["old_leader"], one.details["new_leader"], one.details["last_offset"],
             one.details["election_ms"], one.details["failover_ms"]) for one in of_kind(found, "controller_failover")
            ]  # fmt: skip

    assert rows == [(17539, 1, 3, 17538, 2194, 3878), (21155, 3, 2, 21154, 18_566, 28_216)]


def test_controlled_shutdown_is_no_crash(found: IncidentsFound) -> None:
    """Node 12 got SIGTERM at 17580, was seen fenced at 18993 and started again at 18994."""
    shutdown = only(found, "controlled_shutdown")

    assert (shutdown.brokers, shutdown.from_offset, shutdown.cause_offset) == ((12,), 17580, 17580)
    assert (shutdown.details["fenced_offset"], shutdown.to_offset, shutdown.partitions) == (18992, 19003, 1409)
    assert shutdown.details["dropped_from_elr"] == 0


def test_fencing_of_a_broker_without_replicas_may_have_been_a_clean_stop(found: IncidentsFound) -> None:
    """Node 15 got SIGTERM at 17578, which leaves the records of a crash, and was unregistered at 17579."""
    stop = only(found, "broker_crash", 15)

    assert (stop.from_offset, stop.partitions) == (17578, 0)
    assert "a clean stop leaves the same records" in stop.text


def test_lost_directory_is_the_cause_of_what_it_took(found: IncidentsFound) -> None:
    """One log dir of broker 13 was taken away at 20421; it was noticed when topic poke was created."""
    lost = only(found, "log_dirs_lost")

    assert (lost.brokers, lost.from_offset, lost.cause_offset, lost.partitions) == ((13,), 20458, 21149, 691)
    assert len(lost.details["log_dirs"]) == 1


def test_reassignments_to_a_dead_broker_were_slow(found: IncidentsFound) -> None:
    """dead-target was moved to 14 while that was dead; cancelled was cancelled; moved was there already."""
    rows = {f"{one.details['topic']}-{one.details['partition']}": one for one in of_kind(found, "reassignment_slow")}

    assert {name: (one.from_offset, one.to_offset, one.cause) for name, one in rows.items()} == {
        "dead-target-0": (9445, 12530, "target_down"),
        "dead-target-1": (9446, 13286, "target_down"),
    }
    outcomes = {row["outcome"]: row["count"] for row in found.search.findings.reassignment_outcomes}
    assert outcomes == {"completed": 4, "cancelled": 2}


def test_what_was_asked_of_all_partitions_is_a_mass_event(found: IncidentsFound) -> None:
    """A preferred election (16396..17539) moved 1143 leaders; six topics were deleted (17550..17556)."""
    rows = [(one.cause, one.from_offset, one.to_offset, one.partitions) for one in of_kind(found, "mass_change")]

    assert rows == [("preferred_election", 16396, 17538, 1143), ("topics_removed", 17550, 17555, 255)]


def test_isr_flapped_where_two_brokers_went_one_after_the_other(found: IncidentsFound) -> None:
    assert of_kind(found, "isr_flapping")
    assert all(one.details["most"] > THRESHOLDS.flaps for one in of_kind(found, "isr_flapping"))


def test_one_process_without_spark_finds_the_same(found: IncidentsFound, kafka_data: Path, tmp_path: Path) -> None:
    """By the controllers' own replay, and rules of its own about partitions."""
    stretch = next(stretches_of(whole_log(kafka_data / "static", tmp_path)))
    versions = read_versions(*stretch, found.search.findings.spans[0].cluster_id)
    alone = search_serially(versions, THRESHOLDS, versions.epochs[-1].last_us).findings

    told = document(alone, incidents(alone, THRESHOLDS))
    assert told == document(found.search.findings, found.incidents)
    assert len(told["incidents"]) > 20


def test_tables_of_another_stretch_of_the_log_are_refused(
    spark: SparkSession, kafka_data: Path, tmp_path: Path
) -> None:
    """A log that goes on behind them is as good; one that ends before, or begins later, is not theirs."""
    log = kafka_data / "static" / "m2" / "log"
    make_history(spark, [str(KAFKA_LOG)], tmp_path / "tables", HistoryOptions(end_offset=500))
    with find_incidents(spark, tmp_path / "tables", [str(log)], THRESHOLDS) as whole:
        assert whole.search.findings.failovers == []
    sentence = "the tables are of the offsets 0 to 499, and the log .* begins at 12538; give the paths"
    beheaded = find_incidents(spark, tmp_path / "tables", [str(BEHEADED_LOG)], THRESHOLDS)
    with pytest.raises(OtherStretch, match=sentence), beheaded:
        pass
    manifest = json.loads((tmp_path / "tables" / "manifest.json").read_text())
    manifest["clusters"][0]["end_offset"] = 20_000
    (tmp_path / "tables" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(OtherStretch, match=r"the offsets 0 to 19999, and the log .* ends at 10995; give the paths"):
        find_incidents(spark, tmp_path / "tables", [str(log)], THRESHOLDS).__enter__()
    (tmp_path / "tables" / "manifest.json").unlink()
    with pytest.raises(OtherStretch, match=r"manifest.json does not tell of which offsets"):
        find_incidents(spark, tmp_path / "tables", [str(log)], THRESHOLDS).__enter__()


def test_what_lasts_counts_to_the_end_of_the_history(found: IncidentsFound) -> None:
    """Of the 792 runs of partitions below min.insync.replicas one lasts: from 20591 to the end."""
    (still,) = [row for row in found.search.findings.under_min_isr if row["ended_by"] == "open"]
    (incident,) = [one for one in of_kind(found, "under_min_isr") if one.is_open]
    (span,) = found.search.findings.spans

    lasted_ms = (span.end - still["from_time"]) / timedelta(milliseconds=1)
    assert abs(still["total_ms"] - lasted_ms) <= 1
    assert still["longest_ms"] == still["total_ms"] > 0
    assert severity(incident) == "critical"
    lines = report(found.search.findings, found.incidents, 20)
    assert any("792 times" in line and "together until the history's end, 1 of them still" in line for line in lines)


def test_directory_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with (
        pytest.raises(NoHistoryTables, match="holds no partition_versions; make the tables"),
        find_incidents(spark, tmp_path, [], THRESHOLDS),
    ):
        pass


def test_page_draws_brokers_controllers_health_and_leadership(found: IncidentsFound) -> None:
    drawn = found.search.series()
    (series,) = drawn.values()

    page = incidents_page(found.search.findings, found.incidents, drawn, {}).render()

    assert max(count for _, count in series.health["leaderless"]) == 782
    assert series.health["under_replicated"][-1][1] == 691
    assert sum(steps[-1][1] for steps in series.led.values()) == 2823
    assert len(series.leaders) == 40
    titles = ("The worst first", "Brokers", "Controllers", "ISR health", "Partitions led", "Leadership")
    for title in (*titles, "unclean_election"):
        assert title in page


def test_tables_behind_the_findings_are_written_as_a_whole(found: IncidentsFound, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_tables(found, out)

    assert {path.name for path in out.iterdir()} == {*TABLES, "incidents", "manifest.json"}
    told = pads.dataset(out / "incidents", format="parquet").to_table().to_pylist()
    assert sorted((row["kind"], row["from_offset"]) for row in told) == sorted(
        (one.kind, one.from_offset) for one in found.incidents
    )
    assert [row["severity"] for row in told] == sorted(row["severity"] for row in told)
    assert json.loads(told[0]["details"])["ahead"][0]["broker"] == 13
    tables = {name: pads.dataset(out / name, format="parquet").to_table() for name in TABLES}
    assert {name: table.schema for name, table in tables.items()} == TABLES
    assert {name: len(table) for name, table in tables.items()} == {
        "leaderless": 782, "under_replicated": 4381, "under_min_isr": 792, "risky_elections": 782,
        "reassignments": 6, "isr_flapping": 691, "instants": 46,
    }  # fmt: skip
    with pytest.raises(StorageError, match="holds something already"):
        write_tables(found, out)


def test_workers_say_what_they_spent(found: IncidentsFound) -> None:
    assert {"read", "share", "sort", "causes", "tables", "parts", "times"} <= set(found.search.use.processor_seconds)
    assert found.search.use.mb_max > 0


def test_empty_history_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """Of the first record alone, which makes nothing."""
    make_history(spark, [str(KAFKA_LOG)], tmp_path / "tables", HistoryOptions(end_offset=1))

    with find_incidents(spark, tmp_path / "tables", [], THRESHOLDS) as nothing:
        findings = nothing.search.findings
        assert nothing.incidents == []
        assert report(findings, [], 20) == ["The tables hold no partition: there is no history to look at."]
        assert "no history" in incidents_page(findings, [], nothing.search.series(), {}).render()
        write_tables(nothing, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*TABLES, "incidents", "manifest.json"}
