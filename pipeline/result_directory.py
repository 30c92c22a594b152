"""Where a job's tables become visible: all at once, or never.

Everything is written to a directory beside the one that was asked for, and that gets its name last, after what workers
say they wrote was found there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from metadata_log.errors import StorageError
from pipeline.delta import make_delta
from pipeline.table_format import TableFormat
from pipeline.uris import local
from pipeline.written import Written, require_written

#: What the run came to, beside the tables.
MANIFEST: Final = "manifest.json"
_STAGING: Final = ".writing"


class ResultDirectory:
    """A directory for results that is there as a whole or not at all."""

    def __init__(self, out: Path, table_format: TableFormat = TableFormat.PARQUET, *, day: str | None = None) -> None:
        """``out`` may not exist, or be empty.

        Args:
            table_format: of its tables, which are written as Parquet. day: as ``delta.make_delta`` takes it.

        Raises:
            StorageError: there is something. DeltaMissing: tables of this format cannot be written. BadSetting: a URI
                that ``uris`` does not know.
        """
        table_format.require_writer()
        self._format, self._day = table_format, day
        self._out = local(str(out)).absolute()
        if self._out.exists() and any(self._out.iterdir()):
            raise StorageError(f"{out}: holds something already; give a directory that is empty or not there")
        self.staging = self._out.with_name(f"{self._out.name}{_STAGING}")

    def __enter__(self) -> Self:
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir(parents=True)
        return self

    def commit(self, manifest: Mapping[str, Any], written: Mapping[str, Written]) -> None:
        """Everything is written: make it visible.

        Args:
            written: by table, all of its files.

        Raises:
            NotShared: that is not what is here.
        """
        require_written(self.staging, written)
        if self._format is TableFormat.DELTA:
            make_delta(self.staging, self._day)
        (self.staging / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if self._out.exists():
            self._out.rmdir()
        self.staging.rename(self._out)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
