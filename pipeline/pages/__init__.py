"""One self-contained HTML page of what a job found: facts, tables, plots; no network, readable on paper.

A job's `--html OUT` is made of this:

    from quorate.pipeline.pages import UP_TIME_COLOURS, HtmlPage, TimelineSpan, bars, heat_map, over_time, spans

    page = HtmlPage("Incidents of cluster CGX0FmftRoq9tiEOLU7vAA", "offsets 0 to 21247")
    page.facts([("Partitions", 3061), ("Without a leader", 782), ("Longest outage", timedelta(seconds=151))])
    page.section("Brokers", "What each of them was, by the records of its registration.")
    page.plot("Up-time", spans([TimelineSpan("broker 11", start, end, "up"), ...], colours=UP_TIME_COLOURS))
    page.table("Outages", ["topic", "partition", "from", "lasted"], rows, total=len(everything))
    page.write(out)

The page is drawn by Plotly, whose script (4.8 MB) is in it. Everything that a caller gives is data: names are escaped
in tables and in plots, whose labels would else read a few HTML tags. Tables, bars and lines are cut where they would be
too many to read or to draw, and say so.

- `page`: the page and its blocks. `cells`: how a value is written.
- `plots`: lines, areas, bars, heat maps. `spans`: time-lines. `drawing`: what they have in common.
"""

from quorate.pipeline.pages.cells import cell, duration
from quorate.pipeline.pages.page import HtmlPage, PageLink, PageNotWritten
from quorate.pipeline.pages.plots import bars, by_day, heat_map, over_time
from quorate.pipeline.pages.spans import UP_TIME_COLOURS, TimelineSpan, spans

__all__ = [
    "UP_TIME_COLOURS",
    "HtmlPage",
    "PageLink",
    "PageNotWritten",
    "TimelineSpan",
    "bars",
    "by_day",
    "cell",
    "duration",
    "heat_map",
    "over_time",
    "spans",
]
