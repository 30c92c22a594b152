"""The page of `history --html`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.history.series import HistorySeries
from pipeline.pages import Page, bars, over_time

if TYPE_CHECKING:
    from pipeline.jobs.history import HistoryReport


def history_page(report: HistoryReport, series: HistorySeries) -> Page:
    """Growth, changes by day, and the topics that changed most."""
    offsets = f"offsets {report.first_offset:,} to {report.end_offset - 1:,}"
    page = Page(f"History of cluster {report.cluster_id}", f"{report.records:,} records, {offsets}")
    page.facts([(name.replace("_", " "), written.rows) for name, written in report.tables.items()])
    if not series.days:
        page.text("The tables hold no version: nothing was ever made.")
        return page
    page.section("Growth", "What there is at the end of each day (UTC).")
    for name, counts in series.held.items():
        page.plot(
            name.capitalize(),
            over_time(np.array(series.days, "datetime64[D]"), {name: counts}, unit=name, is_stepped=True),
        )
    page.section("Changes", "Versions by the day on which they begin. A version is what held between two changes.")
    days = [day.isoformat() for day in series.days]
    for name, counts in series.begun.items():
        if any(counts):
            page.plot(name.replace("_", " ").capitalize(), bars(days, {name: counts}, unit="versions"))
    page.section("Health")
    without = {"hours": series.leaderless_hours}
    text = "Of all partitions together, by the day on which they lost their leader."
    page.plot("Hours without a leader", bars(days, without, unit="hours"), text)
    rows = [(one.topic, one.versions, one.partitions, one.leaderless) for one in series.topics]
    page.table("Topics that changed most", ["topic", "versions", "partitions", "without a leader"], rows)
    return page
