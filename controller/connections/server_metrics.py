"""Shows what every server of HTTP here says of itself: its release, its answers and its connections.

Imported by scrapes only, for the library's sake.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from quorate.controller.connections.http_counts import HttpCounts
from quorate.metadata_log.release import release


def build_info() -> Metric:
    """The software that runs."""
    text = "1, of the release that runs, and the Python that runs it."
    family = GaugeMetricFamily("quorate_build_info", text, labels=["version", "python"])
    family.add_metric([release(), platform.python_version()], 1.0)
    return family


def http_metrics(prefix: str, counts: HttpCounts) -> Iterator[Metric]:
    """All of them. ``prefix``: of their names, with the underscore."""
    text = "From a request's head until its answer was made, by route; of a stream until its end."
    seconds = HistogramMetricFamily(f"{prefix}http_request_seconds", text, labels=["route"])
    for route, durations in sorted(counts.seconds.items()):
        seconds.add_metric([route], durations.buckets(), durations.total_seconds)
    yield seconds
    text = "Requests and connections that were refused, by the limit that was the reason."
    refused = CounterMetricFamily(f"{prefix}http_limit_refusals", text, labels=["limit"])
    for limit, count in sorted(counts.refused.items()):
        refused.add_metric([limit], count)
    yield refused
    text = "Connections that are open, those whose handshake is under way among them."
    yield GaugeMetricFamily(f"{prefix}http_connections_open", text, value=len(counts.connections))
