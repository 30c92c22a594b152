"""The Delta tables of a history, while it is gone on with: a run's changes are in all of them, or in none.

::

    OUT/TABLE/_delta_log/        which files are in a table, and the number of the last run that changed it
    OUT/manifest.json            what the tables hold of each cluster, and the number of the last run
    OUT/_resume/                 each cluster's state where its history ends, but for partitions
    OUT/_writing/                what a run writes: its changes; of no worth if it ends
    OUT/_ready/                  the same, whole: from here on the run counts
    OUT/_lock                    held by who appends

Each table's change is one commit of Delta's. That all of them are made is seen to by ``_ready``, which gets its name by
one rename: who finds it brings the changes into those tables that do not have that run's number, then writes the
manifest. So a run that is killed did nothing, or is finished by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files.storage import write_file
from quorate.pipeline.history.resuming import ClusterRead
from quorate.pipeline.history.states import STATES
from quorate.pipeline.history.writing import DAY
from quorate.pipeline.tables.delta import Change, apply_change, is_delta, open_files, table_sum
from quorate.pipeline.tables.entering import enter
from quorate.pipeline.tables.history_schema import KEYS, TABLES
from quorate.pipeline.tables.result_directory import MANIFEST
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import Written, require_written

_WRITING, _READY, _LOCK = "_writing", "_ready", "_lock"
_NOTE: Final = "change.json"


class NotAppendable(StorageError):
    """A directory that a history cannot be appended to, and why."""


class AppendedTables:
    """The tables of a history, taken hold of to append to them: a context. One that was cut short is finished first."""

    def __init__(self, out: str | Path) -> None:
        """``out``: a directory that a history was written to, to be gone on with.

        Raises:
            NotAppendable: it is none, or another run is appending to it. DeltaMissing: it cannot be written.
        """
        TableFormat.DELTA.require_writer(str(out))
        self._out = Path(os.path.abspath(out))
        #: Where a run writes its changes.
        self.staging = str(self._out / _WRITING)
        self._lock: BinaryIO | None = None
        self._manifest: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name in TABLES:
            if not is_delta(str(self._out / name)):
                raise NotAppendable(
                    f"{self._out}: holds no Delta table {name}, and only a history of Delta tables can be gone on "
                    "with; give another directory"
                )
        self._lock = (self._out / _LOCK).open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise NotAppendable(f"{self._out}: another run is appending to it; wait for its end") from error
        try:
            self._finish()
            self._manifest = self._read_manifest()
            shutil.rmtree(self.staging, ignore_errors=True)
            Path(self.staging).mkdir()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()

    @property
    def run(self) -> int:
        """The number of this run, from 1 on; that which made the tables was 0."""
        number: int = self._manifest.get("run", 0)
        return number + 1

    @property
    def held(self) -> dict[str, ClusterRead]:
        """The history that the tables hold, by cluster."""
        return {one["cluster_id"]: ClusterRead.from_json(one) for one in self._manifest["clusters"]}

    def require_secrets(self, *, hidden: bool) -> None:
        """Refuse to mix values that are hidden with values that are not.

        Raises:
            NotAppendable: the tables hide secrets and are to show them, or the other way round.
        """
        if self._manifest.get("hides_secrets", False) is not hidden:
            kind, do = ("shown", "with --show-secrets") if hidden else ("hidden", "without --show-secrets")
            raise NotAppendable(f"{self._out}: secrets are {kind} in these tables: go on {do}, or make them again")

    def state_of(self, cluster: ClusterRead) -> str:
        """The file with a cluster's state where its history ends."""
        assert cluster.resume is not None
        return str(self._out / STATES / cluster.resume.state)

    def open_files(self, cluster_id: str) -> dict[str, int]:
        """The files in which versions of a cluster's partitions may be that hold still, with their bytes."""
        return open_files(str(self._out / "partition_versions"), cluster_id)

    def commit(
        self, clusters: Iterable[ClusterRead], manifest: Mapping[str, Any], written: Mapping[str, Written]
    ) -> dict[str, Written]:
        """The changes are written: bring all of them into the tables, and return what is in these now.

        Args:
            clusters: as they were read now. manifest: the rest of it. written: by table, all files of changes.

        Raises:
            NotShared: that is not what is here.
        """
        require_written(self.staging, written)
        whole = self.held
        for one in clusters:
            whole[one.cluster_id] = whole[one.cluster_id].followed_by(one) if one.cluster_id in whole else one
        found = [whole[name] for name in sorted(whole)]
        records = sum(one.records for one in found)
        note = {**manifest, "clusters": [asdict(one) for one in found], "records": records, "run": self.run}
        (Path(self.staging) / _NOTE).write_text(json.dumps(note), "utf-8")
        enter(Path(self.staging), self._out / _READY)
        return self._finish()

    def _finish(self) -> dict[str, Written]:
        """Bring in changes that are whole; nothing happens where there are none."""
        ready = self._out / _READY
        if not ready.is_dir():
            return {}
        note = json.loads((ready / _NOTE).read_text("utf-8"))
        for name, keys in KEYS.items():
            apply_change(str(self._out / name), Change(ready / name, keys), note["run"], DAY)
        states = self._out / STATES
        for path in sorted(ready.glob(f"{STATES}/*")):
            path.replace(states / path.name)
        tables = {name: table_sum(str(self._out / name)) for name in TABLES}
        note["tables"] = {name: asdict(one) for name, one in tables.items()}
        text = json.dumps(note, indent=2) + "\n"
        write_file(str(self._out / MANIFEST), lambda file: _write(file, text))
        needed = {one["resume"]["state"] for one in note["clusters"]}
        for path in states.iterdir():
            if path.name not in needed:
                path.unlink()
        # Not file by file under its name: half of it would look like a whole one.
        ready.rename(self.staging)
        shutil.rmtree(self.staging)
        return tables

    def _read_manifest(self) -> dict[str, Any]:
        path = self._out / MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
            clusters = [ClusterRead.from_json(one) for one in manifest["clusters"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotAppendable(f"{path}: does not tell what the tables hold ({error}); make them again") from error
        if any(one.resume is None for one in clusters):
            raise NotAppendable(f"{self._out}: the tables were not made to be continued; make them with --append")
        return manifest


def _write(file: BinaryIO, text: str) -> None:
    file.write(text.encode())
