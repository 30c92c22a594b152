"""Which incidents are the worst, and that none of a kind is lost among many of another."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from quorate.pipeline.incidents.partitions.series import ClusterSeries
from quorate.pipeline.incidents.telling.incident_table import incident_table
from quorate.pipeline.incidents.telling.page import incidents_page
from quorate.pipeline.incidents.telling.report import report
from quorate.pipeline.incidents.telling.severity import by_severity, severity, worst
from quorate.snapshots.incidents.findings import HistorySpan, IncidentFindings
from quorate.snapshots.incidents.telling.incident import Incident

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FLAPPING = Incident("c", "isr_flapping", 10, BEGIN, None, None, False, (3,), 1, "follower_lagged", None, "it flaps")
CRASH = replace(FLAPPING, kind="broker_crash", from_offset=900, text="it crashed")
MANY = [replace(FLAPPING, from_offset=offset) for offset in range(2_000)]


@pytest.mark.parametrize(
    ("kind", "is_open", "expected"),
    [
        ("unclean_election", False, "critical"),
        ("leaderless", True, "critical"),
        ("leaderless", False, "major"),
        ("controller_failover", True, "major"),
        ("isr_flapping", False, "minor"),
    ],
)
def test_severity_is_of_the_kind_and_of_what_lasts(kind: str, is_open: bool, expected: str) -> None:
    assert severity(replace(FLAPPING, kind=kind, is_open=is_open)) == expected


def test_worse_goes_first_then_open_then_larger_then_longer() -> None:
    large = replace(CRASH, partitions=50)
    long = replace(CRASH, end=BEGIN + timedelta(hours=1))
    still = replace(CRASH, is_open=True)

    assert by_severity([FLAPPING, CRASH, long, large, still]) == [still, large, long, CRASH, FLAPPING]


def test_worst_have_every_kind_and_no_more_than_asked_for() -> None:
    crashes = [replace(CRASH, from_offset=offset) for offset in range(300)]
    lost = replace(CRASH, kind="log_dirs_lost")

    chosen = worst([*MANY, *crashes, lost], 100)

    assert len(chosen) == 100
    assert chosen[0] == lost
    assert [one.kind for one in chosen[-3:]] == ["broker_crash", "isr_flapping", "isr_flapping"]


def test_page_and_report_of_many_have_the_rare_ones() -> None:
    """The only crash comes behind two thousand others by time."""
    findings = IncidentFindings([HistorySpan("c", 0, 2_000, BEGIN, BEGIN + timedelta(days=100), 5)])
    told = [*MANY, CRASH]

    page = incidents_page(findings, told, {"c": ClusterSeries({}, {}, {})}, {}).render()
    lines = report(findings, told, 20)

    before, _, behind = page.partition("All incidents")
    assert before.count("it crashed") == 1
    assert (before.count("it flaps"), behind.count("it flaps")) == (99, 2_000)
    assert any("broker_crash: it crashed" in line for line in lines)
    assert "2,001 incidents: 0 critical, 1 major, 2,000 minor; 0 open." in lines[1]
    assert incident_table(told).column("kind")[0].as_py() == "broker_crash"


def test_page_of_several_clusters_begins_with_a_row_of_each() -> None:
    spans = [HistorySpan(name, 0, 9, BEGIN, BEGIN, 5) for name in ("quiet", "loud")]
    told = [replace(CRASH, cluster_id="loud")]

    drawn = dict.fromkeys(("quiet", "loud"), ClusterSeries({}, {}, {}))
    page = incidents_page(IncidentFindings(spans), told, drawn, {}).render()

    assert "left out" not in page
    assert "<h1>Incidents of 2 clusters</h1>" in page
    assert page.index('href="#loud"') < page.index('href="#quiet"') < page.index('<h2 id="quiet">')


def test_page_names_clusters_that_were_left_out_before_all_others() -> None:
    spans = [HistorySpan("there", 0, 9, BEGIN, BEGIN, 5)]
    failed = {"gone-b": "no such file", "gone-a": "damaged at byte <7>"}

    page = incidents_page(IncidentFindings(spans), [], {"there": ClusterSeries({}, {}, {})}, failed).render()

    left_out, _, rest = page.partition('<h2 id="there">')
    assert "Clusters that were left out" in left_out
    assert left_out.index("gone-a") < left_out.index("gone-b")
    assert "damaged at byte &lt;7&gt;" in left_out
    assert "gone-" not in rest
