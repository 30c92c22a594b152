"""The page of `history --html`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quorate.pipeline.history.report import HistoryReport
from quorate.pipeline.history.resuming import ClusterRead
from quorate.pipeline.history.series import HistorySeries
from quorate.pipeline.pages import HtmlPage, PageLink, by_day, over_time


def history_page(report: HistoryReport, drawn: Mapping[str, HistorySeries]) -> HtmlPage:
    """Growth, changes by day, and the topics that changed most, cluster by cluster.

    Args:
        drawn: by cluster.
    """
    if len(report.clusters) == 1:
        (one,) = report.clusters
        offsets = f"offsets {one.first_offset:,} to {one.end_offset - 1:,}"
        days = drawn[one.cluster_id].days
        when = f", {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "") if days else ""
        page = HtmlPage(f"History of cluster {one.cluster_id}", f"{report.records:,} records, {offsets}{when}")
    else:
        page = HtmlPage(f"History of {len(report.clusters)} clusters", f"{report.records:,} records")
    page.facts([(name.replace("_", " ").capitalize(), written.rows) for name, written in report.tables.items()])
    if len(report.clusters) > 1:
        _overview(page, report.clusters, drawn)
    for one in report.clusters:
        whose = f" of {one.cluster_id}" if len(report.clusters) > 1 else ""
        _cluster(page, drawn[one.cluster_id], whose, one.cluster_id)
    return page


def _overview(page: HtmlPage, clusters: Sequence[ClusterRead], drawn: Mapping[str, HistorySeries]) -> None:
    """One row a cluster, those without leaders for longest first."""
    rows: list[list[Any]] = []
    for one in clusters:
        series = drawn[one.cluster_id]
        held = [
            counts[-1] if counts else 0 for counts in (series.held.get(name, []) for name in ("topics", "partitions"))
        ]
        link = PageLink(one.cluster_id, one.cluster_id)
        rows.append([link, sum(series.leaderless_hours), *held, one.records, one.first_offset, one.end_offset])
    rows.sort(key=lambda row: (-row[1], row[0].text))
    columns = ["cluster", "hours without a leader", "topics", "partitions", "records", "first offset", "end offset"]
    page.table("Clusters", columns, rows, rows_max=len(rows))


def _cluster(page: HtmlPage, series: HistorySeries, whose: str, anchor: str) -> None:
    page.section(f"Growth{whose}", "What there is at the end of each day (UTC).", anchor)
    if not series.days:
        page.text("The tables hold no version: nothing was ever made.")
        return
    if len(series.days) == 1:
        _one_day(page, series)
    else:
        _plots(page, series, whose)
    rows = [(one.topic, one.versions, one.partitions, one.leaderless) for one in series.topics]
    page.table("Topics that changed most", ["topic", "versions", "partitions", "without a leader"], rows)


def _one_day(page: HtmlPage, series: HistorySeries) -> None:
    """A plot of one point tells less than its number."""
    page.text(f"All of it was on {series.days[0]}.")
    held = [(name.capitalize(), counts[0]) for name, counts in series.held.items()]
    page.facts([*held, ("Hours without a leader, of all partitions", series.leaderless_hours[0])])


def _plots(page: HtmlPage, series: HistorySeries, whose: str) -> None:
    for name, counts in series.held.items():
        page.plot(
            name.capitalize(),
            over_time(np.array(series.days, "datetime64[D]"), {name: counts}, unit=name, is_stepped=True),
        )
    text = "Versions by the day on which they begin. A version is what held between two changes."
    page.section(f"Changes{whose}", text)
    for name, counts in series.begun.items():
        if any(counts):
            page.plot(name.replace("_", " ").capitalize(), by_day(series.days, {name: counts}, unit="versions"))
    page.section(f"Health{whose}")
    without = {"hours": series.leaderless_hours}
    text = "Of all partitions together, by the day on which they lost their leader."
    page.plot("Hours without a leader", by_day(series.days, without, unit="hours"), text)
