"""The value of min.insync.replicas for every topic at every offset. Pure; configs are few.

A topic's own value goes before the cluster-wide default that the log has; a single broker's value means nothing here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from quorate.metadata_log.records.config_texts import as_whole

NAME: Final = "min.insync.replicas"
TOPIC: Final = 2
BROKER: Final = 4


class ConfigSpan(NamedTuple):
    """One version of one config; the end is exclusive, None while it holds."""

    cluster_id: str
    resource_type: int
    resource_name: str
    value: str | None
    from_offset: int
    from_us: int
    to_offset: int | None
    to_us: int | None


class MinIsrStep(NamedTuple):
    """A value that holds from one offset to another (exclusive; None: to the end)."""

    from_offset: int
    to_offset: int | None
    from_us: int
    value: int


@dataclass(frozen=True)
class MinIsrSteps:
    """Steps by cluster and topic; under None those of topics without a value of their own."""

    by_topic: dict[tuple[str, str | None], list[MinIsrStep]]
    #: Where the log says nothing.
    default: int

    def of(self, cluster_id: str, topic: str) -> list[MinIsrStep]:
        """Those of one topic, in order: one value holds at every offset."""
        for key in ((cluster_id, topic), (cluster_id, None)):
            if key in self.by_topic:
                return self.by_topic[key]
        return [MinIsrStep(-1, None, 0, self.default)]

    def rows(self) -> list[tuple[str, str | None, list[MinIsrStep]]]:
        """As rows of a table."""
        return [(*key, steps) for key, steps in self.by_topic.items()]


def min_isr_steps(spans: Iterable[ConfigSpan], default: int) -> MinIsrSteps:
    """The effective values, of the versions of min.insync.replicas of topics and of the cluster default."""
    own: dict[tuple[str, str], list[ConfigSpan]] = {}
    wide: dict[str, list[ConfigSpan]] = {}
    for span in spans:
        if span.resource_type == TOPIC:
            own.setdefault((span.cluster_id, span.resource_name), []).append(span)
        elif span.resource_type == BROKER and not span.resource_name:
            wide.setdefault(span.cluster_id, []).append(span)
    nothing = _ConfigValues([])
    of_clusters = {cluster: _ConfigValues(spans) for cluster, spans in wide.items()}
    found: dict[tuple[str, str | None], list[MinIsrStep]] = {
        (cluster, None): _steps(nothing, spans, default) for cluster, spans in of_clusters.items()
    }
    for (cluster, topic), spans_of_topic in own.items():
        found[cluster, topic] = _steps(_ConfigValues(spans_of_topic), of_clusters.get(cluster, nothing), default)
    return MinIsrSteps(found, default)


def _steps(first: _ConfigValues, second: _ConfigValues, default: int) -> list[MinIsrStep]:
    values: list[tuple[int, int, int]] = []
    for offset, us in sorted({(-1, 0)} | first.edges | second.edges):
        value = first.value_at(offset, second.value_at(offset, default))
        if not values or values[-1][2] != value:
            values.append((offset, us, value))
    ends = [offset for offset, _, _ in values[1:]]
    return [MinIsrStep(start, end, us, value) for (start, us, value), end in zip(values, [*ends, None], strict=True)]


class _ConfigValues:
    """The versions of one config: one holds at a time."""

    def __init__(self, spans: Iterable[ConfigSpan]) -> None:
        ordered = sorted(spans, key=lambda span: span.from_offset)
        self._begins = [span.from_offset for span in ordered]
        self._ends = [span.to_offset for span in ordered]
        self._numbers = [None if span.value is None else as_whole(span.value.strip()) for span in ordered]
        #: Offsets and times between which one value holds.
        self.edges = {(span.from_offset, span.from_us) for span in ordered}
        for span in ordered:
            if span.to_offset is not None and span.to_us is not None:
                self.edges.add((span.to_offset, span.to_us))

    def value_at(self, offset: int, otherwise: int) -> int:
        place = bisect_right(self._begins, offset) - 1
        if place < 0:
            return otherwise
        number, end = self._numbers[place], self._ends[place]
        return otherwise if number is None or (end is not None and end <= offset) else number
