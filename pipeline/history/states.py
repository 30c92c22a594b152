"""The notes by which a history is gone on with: where each cluster's ends, and a file with its state there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, Final

from quorate.pipeline.files.inputs import InputCluster
from quorate.pipeline.files.storage import write_file
from quorate.pipeline.history.resuming import ClusterRead, Resume, batch_at

#: Where the states are, in the directory of a history.
STATES: Final = "_resume"


class States:
    """The notes of one run."""

    def __init__(self, clusters: Sequence[InputCluster], directory: str, run: int) -> None:
        """``run``: a number; files of two runs have different names."""
        self._clusters = {one.cluster_id: one for one in clusters}
        self._directory, self._run, self._count = directory, run, 0

    def note(self, read: ClusterRead, settled: int, state: bytes) -> ClusterRead:
        """The part of a cluster's log that was read, with where to go on.

        Args:
            settled: as ``Timeline.settled``. state: of ``cells.encode_rare``, all records of the state but partitions'.

        Raises:
            StorageError: the log cannot be read again at its end.
        """
        name = f"{self._run:06d}-{self._count:06d}.records"
        self._count += 1
        write_file(f"{self._directory}/{STATES}/{name}", lambda file: _write(file, state))
        batch = batch_at(self._clusters[read.cluster_id], read.end_offset - 1)
        return replace(read, resume=Resume(settled, batch, name))


def _write(file: BinaryIO, state: bytes) -> None:
    file.write(state)
