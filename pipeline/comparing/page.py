"""The page of `compare --html`. Pure."""

from __future__ import annotations

from pipeline.comparing.report import Differences, Side
from pipeline.pages import Page, bars

_ROWS_SHOWN = 500


def compare_page(a: Side, b: Side, found: list[Differences]) -> Page:
    """Counts of each kind, and the first differences with old and new."""
    page = Page(f"{a.cluster_id} and {b.cluster_id} compared", f"A: {a.moment} of {a.path}; B: {b.moment} of {b.path}")
    page.facts([("Equal", all(kind.is_equal for kind in found)), *((kind.kind, kind.total) for kind in found)])
    changes = ("only_a", "only_b", "changed")
    series = {change.replace("_", " "): [kind.counts[change] for kind in found] for change in changes}
    page.plot("Differences", bars([kind.kind for kind in found], series, is_stacked=True))
    for kind in found:
        if not kind.is_equal:
            page.section(kind.kind, f"{kind.rows_a:,} rows in A, {kind.rows_b:,} in B.")
            if kind.by_field:
                page.plot("By field", bars(list(kind.by_field), {"rows": list(kind.by_field.values())}))
            rows = [
                ["-".join(map(str, one["key"].values())), one["change"], one["field"], one["old"], one["new"]]
                for one in kind.first
            ]
            page.table("First differences", ["row", "change", "field", "A", "B"], rows, rows_max=_ROWS_SHOWN)
    return page
