"""The library's metric families with one value, or one for each label, under this project's prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric


class Durations(Protocol):
    """Durations that were counted by bucket."""

    @property
    def total_seconds(self) -> float:
        """Their sum."""

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative: the upper end in seconds, and the count."""


def gauge(name: str, text: str, value: float) -> Metric:
    """A value that may fall."""
    return GaugeMetricFamily(f"quorate_{name}", text, value=value)


def counter(name: str, text: str, value: float) -> Metric:
    """A value that only rises; the library puts ``_total`` behind its name."""
    return CounterMetricFamily(f"quorate_{name}", text, value=value)


def gauges(name: str, text: str, label: str, values: Iterable[tuple[object, float]]) -> Metric:
    """A gauge for each value of a label."""
    family = GaugeMetricFamily(f"quorate_{name}", text, labels=[label])
    for key, value in values:
        family.add_metric([str(key)], value)
    return family


def counters(name: str, text: str, label: str, values: Iterable[tuple[object, float]]) -> Metric:
    """A counter for each value of a label."""
    family = CounterMetricFamily(f"quorate_{name}", text, labels=[label])
    for key, value in values:
        family.add_metric([str(key)], value)
    return family


def histogram(name: str, text: str, found: Durations) -> Metric:
    """Durations."""
    return HistogramMetricFamily(f"quorate_{name}", text, buckets=found.buckets(), sum_value=found.total_seconds)


def histograms(name: str, text: str, label: str, found: Mapping[str, Durations]) -> Metric:
    """Durations for each value of a label."""
    family = HistogramMetricFamily(f"quorate_{name}", text, labels=[label])
    for key, durations in sorted(found.items()):
        family.add_metric([key], durations.buckets(), durations.total_seconds)
    return family
