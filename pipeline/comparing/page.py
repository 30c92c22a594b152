"""The page of `compare --html`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.pipeline.comparing.report import Differences, Side, not_compared_text
from quorate.pipeline.pages import HtmlPage, bars

_ROWS_SHOWN = 500


def compare_page(a: Side, b: Side, found: list[Differences], not_compared: Sequence[str]) -> HtmlPage:
    """Counts of each kind, and the first differences with old and new."""
    clusters = (
        f"Two states of cluster {a.cluster_id}"
        if a.cluster_id == b.cluster_id
        else f"Clusters {a.cluster_id} and {b.cluster_id}"
    )
    page = HtmlPage(f"{clusters} compared", f"A: {a.moment} of {a.path}; B: {b.moment} of {b.path}")
    page.facts(
        [
            ("Equal", all(kind.is_equal for kind in found)),
            *((f"{kind.kind.capitalize()} that differ", kind.total) for kind in found),
        ]
    )
    if not_compared:
        page.text(f"{not_compared_text(not_compared)}.")
    changes = {"only_a": "only in A", "only_b": "only in B", "changed": "changed"}
    series = {name: [kind.counts[change] for kind in found] for change, name in changes.items()}
    page.plot("Differences", bars([kind.kind for kind in found], series, unit="rows", is_stacked=True))
    for kind in found:
        if not kind.is_equal:
            page.section(kind.kind.capitalize(), f"{kind.rows_a:,} rows in A, {kind.rows_b:,} in B.")
            by_field = {field: count for field, count in kind.by_field.items() if count}
            if by_field:
                plot = bars(list(by_field), {"rows": list(by_field.values())}, unit="rows")
                page.plot("By field", plot, "Changed rows. One in which several fields differ counts in each of them.")
            rows = [
                ["-".join(map(str, one["key"].values())), one["change"], one["field"], one["old"], one["new"]]
                for one in kind.first
            ]
            told = len({row[0] for row in rows})
            text = (
                "" if told == kind.total else f"Of {told:,} of the {kind.total:,} rows that differ; --limit has more."
            )
            page.table("First differences", ["row", "change", "field", "A", "B"], rows, rows_max=_ROWS_SHOWN, text=text)
    return page
