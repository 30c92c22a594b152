"""What a history came to, as the job returns it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pipeline.history.counting import Counts
from pipeline.written import Written


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """What a history has of one cluster."""

    cluster_id: str
    #: Offsets: from the first record that is in it, to the end (exclusive).
    first_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What a history came to."""

    #: By id.
    clusters: list[ClusterRead]
    #: Of all clusters, as the tables.
    records: int
    #: By table.
    tables: dict[str, Written]
    seconds: float
    #: Processor seconds of the workers by what they did.
    processor_seconds: dict[str, float]
    #: Of the worker that took most, in MB.
    worker_mb_max: int
    #: By cluster, or path where that is not known: why nothing of it is in the tables. Only of several clusters.
    failed: dict[str, str] = field(default_factory=dict)
    #: By cluster, for a page; not in the manifest.
    counts: dict[str, Counts] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(replace(self, counts={})).items() if name != "counts"}
