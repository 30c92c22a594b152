"""The directory where a job's tables become visible: all at once, or never.

Everything is written to a directory beside the one that was asked for, and that gets its name last, after what workers
say they wrote was found there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files.storage import absolute, checked, files_under, is_remote, remove_file, write_file
from quorate.pipeline.tables.delta import make_delta
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import STARTED, Written, require_written

#: What the run came to, beside the tables.
MANIFEST: Final = "manifest.json"
_STAGING: Final = ".writing"


class ResultDirectory:
    """A directory for results that is there as a whole or not at all.

    A store has no directories that could get another name: there results are written to their place, and the manifest,
    which is written last, says that they are whole.
    """

    def __init__(
        self, out: str | Path, table_format: TableFormat = TableFormat.PARQUET, *, day: str | None = None
    ) -> None:
        """``out`` may not exist, or be empty.

        Args:
            table_format: of its tables, which are written as Parquet. day: as ``delta.make_delta`` takes it.

        Raises:
            StorageError: there is something. DeltaMissing: tables of this format cannot be written. BadSetting: a URI
                that ``storage`` does not know, or Delta tables in a store.
        """
        table_format.require_writer(str(out))
        self._format, self._day = table_format, day
        self._out = absolute(checked(str(out)))
        self._is_remote = is_remote(self._out)
        if holds_something(self._out):
            raise StorageError(f"{out}: holds something already; give a directory that is empty or not there")
        #: Where everything is written to.
        self.staging = self._out if self._is_remote else f"{self._out}{_STAGING}"
        self._is_committed = False

    def __enter__(self) -> Self:
        if self._is_remote:
            write_file(f"{self.staging}/{STARTED}", lambda file: None)
        else:
            shutil.rmtree(self.staging, ignore_errors=True)
            Path(self.staging).mkdir(parents=True)
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
            make_delta(Path(self.staging), self._day)
        text = json.dumps(manifest, indent=2) + "\n"
        write_file(f"{self.staging}/{MANIFEST}", lambda file: _write_text(file, text))
        if self._is_remote:
            remove_file(f"{self.staging}/{STARTED}")
        else:
            if os.path.exists(self._out):
                os.rmdir(self._out)
            os.rename(self.staging, self._out)
        self._is_committed = True

    def __exit__(self, *_: object) -> None:
        if not self._is_remote:
            shutil.rmtree(self.staging, ignore_errors=True)
        elif not self._is_committed:
            for path in files_under(self.staging):
                remove_file(path)


def holds_something(out: str) -> bool:
    """Whether there is anything where results are to go."""
    if is_remote(out):
        return bool(files_under(out))
    return os.path.exists(out) and (not os.path.isdir(out) or bool(os.listdir(out)))


def _write_text(file: BinaryIO, text: str) -> None:
    file.write(text.encode())
