"""The page of the job: growth, balance in time, before and after."""

from __future__ import annotations

from typing import Any

from quorate.pipeline.capacity.report import plan_lines
from quorate.pipeline.capacity.trend import RecordsByDay, Trend, by_racks
from quorate.pipeline.pages import HtmlPage, bars, by_day, heat_map, over_time
from quorate.pipeline.planning.summary import BrokerFigures, PlanSummary


def capacity_page(
    cluster_id: str, summary: PlanSummary, trend: Trend | None, records: RecordsByDay, racks: dict[int, str | None]
) -> HtmlPage:
    """Return the page of a cluster."""
    page = HtmlPage(f"Capacity of cluster {cluster_id}", "growth, balance, and a plan that evens it out")
    verdict = summary.verdict
    facts: list[tuple[str, Any]] = [
        ("Partitions", summary.partitions),
        ("Replicas", summary.replicas),
        ("Brokers that take replicas", sum(one.role == "takes" for one in summary.brokers)),
        ("Partitions that break the rack rule", summary.rack_rule_broken_before),
        ("Replicas in lost directories", summary.lost),
        ("Replicas a broker, now", f"{verdict.replicas_before.lowest:,} to {verdict.replicas_before.highest:,}"),
        ("With the plan", f"{verdict.replicas.lowest:,} to {verdict.replicas.highest:,}"),
        ("Moves of the plan", summary.moves),
        ("No plan needs fewer than", summary.fewest_moves),
    ]
    page.facts(facts)
    page.section("The plan")
    for line in plan_lines(summary):
        page.text(line)
    _plan_plots(page, summary.brokers)
    if trend is not None or records.days:
        _growth(page, trend, records)
    if trend is not None:
        _balance(page, trend, racks)
    return page


def _plan_plots(page: HtmlPage, brokers: tuple[BrokerFigures, ...]) -> None:
    # Those whose load changes most stand first, where there are too many to draw.
    shown = sorted(brokers, key=lambda one: -abs(one.replicas_after - one.replicas_before))[:200]
    shown.sort(key=lambda one: (one.rack or "", one.broker))
    names = [f"{one.broker} ({one.rack})" if one.rack else str(one.broker) for one in shown]
    page.plot(
        "Replicas of each broker",
        bars(
            names,
            {"before": [one.replicas_before for one in shown], "after": [one.replicas_after for one in shown]},
            unit="replicas",
        ),
    )
    page.plot(
        "Preferred leaders of each broker",
        bars(
            names,
            {"before": [one.preferred_before for one in shown], "after": [one.preferred_after for one in shown]},
            unit="partitions",
        ),
    )
    has_sizes = any(one.bytes_before is not None for one in brokers)
    columns = [
        "broker",
        "rack",
        "role",
        "replicas",
        "with the plan",
        "leads now",
        "preferred leader of",
        "with the plan",
    ]
    page.table(
        "Brokers",
        [*columns, "bytes", "with the plan"] if has_sizes else columns,
        [_row(one, has_sizes=has_sizes) for one in shown],
        total=len(brokers),
    )


def _row(one: BrokerFigures, *, has_sizes: bool) -> tuple[Any, ...]:
    row = (
        str(one.broker),
        one.rack,
        one.role,
        one.replicas_before,
        one.replicas_after,
        one.leaders_now,
        one.preferred_before,
        one.preferred_after,
    )
    return (*row, one.bytes_before, one.bytes_after) if has_sizes else row


def _growth(page: HtmlPage, trend: Trend | None, records: RecordsByDay) -> None:
    page.section("Growth")
    if trend is not None:
        counts = {"partitions": trend.partitions, "replicas": trend.replicas, "topics": trend.topics}
        text = "Counted at the end of each day, or at moments evenly spread from the first record to the last."
        page.plot("Topics, partitions, replicas", over_time(trend.times, counts, unit="count", is_stepped=True), text)
    if records.days:
        page.plot("Records by type and day", by_day(records.days, records.counts, unit="records", is_stacked=True))


def _balance(page: HtmlPage, trend: Trend, racks: dict[int, str | None]) -> None:
    page.section("Balance in time", "An even cluster has lines that lie on one another, and rows of one colour.")
    count = len(trend.times)
    for what, counts in (("Leaders", trend.leaders_on), ("Replicas", trend.replicas_on)):
        by_rack = by_racks(counts, racks, count)
        if len(by_rack) > 1:
            page.plot(f"{what} by rack", over_time(trend.times, by_rack, unit=what.lower(), is_stepped=True))
        names = [f"broker {broker}" for broker in counts]
        page.plot(
            f"{what} by broker", heat_map(names, trend.times, list(counts.values()), unit=what.lower(), is_time=True)
        )
    if trend.leaderless.any():
        page.plot(
            "Partitions without a leader",
            over_time(trend.times, {"without a leader": trend.leaderless}, unit="partitions", is_stepped=True),
        )
