"""The tables of the history job: brokers and configs, which are few, and the files of partitions' versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.storage import is_directory
from quorate.pipeline.tables.table_reading import read_table, table_files
from quorate.snapshots.incidents.brokers import BrokerVersion
from quorate.snapshots.incidents.findings import Row
from quorate.snapshots.incidents.kinds import UNCLEAN_ALLOWED
from quorate.snapshots.incidents.min_isr import NAME as MIN_ISR
from quorate.snapshots.incidents.min_isr import ConfigSpan

_PARTITIONS: Final = "partition_versions"
_BROKERS: Final = "broker_versions"
_CONFIGS: Final = "config_versions"
#: What versions are called here; times become microseconds since 1970.
_OFFSETS: Final = {"valid_from_offset": "from_offset", "valid_to_offset": "to_offset"}
_TIMES: Final = {"valid_from": "from_us", "valid_to": "to_us"}


class NoHistoryTables(PipelineError):
    """A directory that does not hold the tables of the history job."""


@dataclass(frozen=True, slots=True)
class VersionTables:
    """A directory of such tables."""

    directory: str
    #: Of the clusters in them those that count; None: all do.
    wanted: frozenset[str] | None = None

    @classmethod
    def of(cls, directory: str) -> Self:
        """The tables in a directory.

        Raises:
            NoHistoryTables: one of them is not there.
        """
        for name in (_PARTITIONS, _BROKERS, _CONFIGS):
            if not is_directory(f"{directory}/{name}"):
                raise NoHistoryTables(f"{directory}: holds no {name}; make the tables with: quorate pipeline history")
        return cls(directory)

    def of_clusters(self, clusters: Iterable[str]) -> Self:
        """Only what is of some clusters."""
        return replace(self, wanted=frozenset(clusters))

    def clusters(self) -> set[str]:
        """The clusters in the tables."""
        found: set[str] = set()
        for name in (_PARTITIONS, _BROKERS, _CONFIGS):
            found.update(pc.unique(read_table(f"{self.directory}/{name}", ["cluster_id"])["cluster_id"]).to_pylist())
        return found

    def partition_files(self) -> dict[str, int]:
        """The files of partitions' versions, with their bytes."""
        return table_files(f"{self.directory}/{_PARTITIONS}")

    def brokers(self) -> list[BrokerVersion]:
        """The versions of brokers."""
        columns = [name for name in BrokerVersion._fields if name not in (*_OFFSETS.values(), *_TIMES.values())]
        rows = self._rows(_BROKERS, columns)
        return [BrokerVersion(**dict(row, log_dirs=tuple(row["log_dirs"] or ()))) for row in rows]

    def configs(self) -> list[tuple[str, ConfigSpan]]:
        """The versions of the configs that matter here, each with its name."""
        columns = ["name", "cluster_id", "resource_type", "resource", "value"]
        rows = self._rows(_CONFIGS, columns, pc.field("name").isin([MIN_ISR, UNCLEAN_ALLOWED]))
        return [(row.pop("name"), ConfigSpan(resource_name=row.pop("resource"), **row)) for row in rows]

    def _rows(self, name: str, columns: list[str], wanted: pc.Expression | None = None) -> list[Row]:
        if self.wanted is not None:
            is_theirs = pc.field("cluster_id").isin(sorted(self.wanted))
            wanted = is_theirs if wanted is None else wanted & is_theirs
        read = [*columns, *_OFFSETS, *_TIMES]
        table = read_table(f"{self.directory}/{name}", read, wanted, by=["cluster_id"])
        for time, named in _TIMES.items():
            table = table.append_column(named, table[time].cast(pa.int64()))
        rows: list[dict[str, Any]] = table.drop_columns(list(_TIMES)).to_pylist()
        return [{_OFFSETS.get(key, key): value for key, value in row.items()} for row in rows]
