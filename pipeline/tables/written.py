"""Checks that what workers say they wrote is there: nothing is called done that was not read back.

A worker on another machine writes to the directory of that name which it sees. Where that is not the driver's, all of
it succeeds and nothing of it is to be found. So workers refuse a directory that the driver has not made, and the driver
looks for every file, its bytes and its rows, before results get their name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.storage import files_under, is_file, is_remote, open_file, write_file

#: What the driver puts into a store first: there are no directories to be seen there.
STARTED: Final = "_writing"
_FILES_AT_ONCE: Final = 8
_REMEDY: Final = "give a directory that the driver and all workers see, as on a shared file system"


class NotShared(PipelineError):
    """The driver does not find what workers wrote, or they do not find where to."""


@dataclass(frozen=True, slots=True)
class Written:
    """The files and rows that were written of one table, by one worker or by all."""

    rows: int
    files: int
    #: Bytes.
    size: int

    def __add__(self, other: Written) -> Written:
        return Written(self.rows + other.rows, self.files + other.files, self.size + other.size)


NOTHING: Final = Written(0, 0, 0)


def require_directory(directory: str) -> None:
    """In a worker: see to it that the directory that the driver has made is here.

    Raises:
        NotShared: it is not.
    """
    there = is_file(f"{directory}/{STARTED}") if is_remote(directory) else os.path.isdir(directory)
    if not there:
        raise NotShared(f"{directory}: the driver has made this directory, and a worker does not see it; {_REMEDY}")


def write_part(table: pa.Table, path: str, **options: Any) -> Written:
    """Write a file of a table; who does it again, as a task that Spark repeats, writes the same file.

    Args:
        options: of pyarrow's Parquet writer.
    """
    return Written(table.num_rows, 1, write_file(path, lambda file: pq.write_table(table, file, **options)))


def require_written(directory: str, told: Mapping[str, Written]) -> None:
    """In the driver: see to it that all of what workers told is there. Files are read as far as they say their rows.

    Args:
        told: by table, which is the name of a directory in ``directory``.

    Raises:
        NotShared: something is missing, or is not what was written.
    """
    for name, expected in told.items():
        found = _found(f"{directory}/{name}")
        if found.files < expected.files:
            raise NotShared(
                f"{directory}: of the {expected.files:,} files that workers wrote of {name} {found.files:,} are here: "
                f"the workers do not share this directory; {_REMEDY}"
            )
        if found != expected:
            raise NotShared(
                f"{directory}: of {name} workers wrote {_in_words(expected)}, and here are {_in_words(found)}: "
                f"{_REMEDY}"
            )


def require_rows(table: str, rows: int) -> None:
    """In the driver: see to it that so many rows are in the files of a table, which Spark's own writer wrote.

    Raises:
        NotShared: they are not.
    """
    found = _found(table)
    if found.rows != rows:
        raise NotShared(
            f"{os.path.dirname(table)}: of the {rows:,} rows that workers wrote {found.rows:,} are here: "
            f"the workers do not share this directory; {_REMEDY}"
        )


def _found(table: str) -> Written:
    files = {
        path: size
        for path, size in files_under(table).items()
        if path.endswith(".parquet") and not os.path.basename(path).startswith(".")
    }
    try:
        # One by one, and nothing of them kept: there may be a hundred thousand.
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            rows = sum(pool.map(_rows, files))
    except (pa.ArrowException, OSError) as error:
        raise NotShared(f"{table}: what workers wrote cannot be read back ({error}); {_REMEDY}") from error
    return Written(rows, len(files), sum(files.values()))


def _rows(path: str) -> int:
    with open_file(path) as file:
        return int(pq.read_metadata(file).num_rows)


def _in_words(written: Written) -> str:
    return f"{written.files:,} files of {written.size:,} bytes with {written.rows:,} rows"
