"""The result of a history, as the job returns it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from quorate.pipeline.history.counting import HistoryCounts
from quorate.pipeline.history.resuming import ClusterRead
from quorate.pipeline.tables.written import Written


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The result of a history."""

    #: By id; where tables were gone on with, what was read now.
    clusters: list[ClusterRead]
    #: Of all clusters.
    records: int
    #: By table, what is in it.
    tables: dict[str, Written]
    seconds: float
    #: Processor seconds of the workers by what they did.
    processor_seconds: dict[str, float]
    #: Of the worker that took most, in MB.
    worker_mb_max: int
    #: By cluster, or path where that is not known: why nothing of it is in the tables. Only of several clusters.
    failed: dict[str, str] = field(default_factory=dict)
    #: Whether configs that may be secrets are hidden in the tables.
    hides_secrets: bool = False
    #: By cluster, for a page; not in the manifest.
    counts: dict[str, HistoryCounts] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(replace(self, counts={})).items() if name != "counts"}
