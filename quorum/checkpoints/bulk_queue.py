"""Checkpoint files on the disk: one job after the other, on a thread of their own.

Their syncs are long, and must not stand before the log's; so this is not the ordered queue of the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from quorate.metadata_log.disk import DiskJob
from quorate.metadata_log.errors import StorageError

#: Called with None when the job ran to its end, with the error when what it worked on was no checkpoint.
BulkDone = Callable[[StorageError | None], None]


@dataclass(frozen=True, slots=True)
class _Queued:
    job: DiskJob
    done: BulkDone


class BulkQueue:
    """Runs jobs in order. A failing disk ends the node; a bad checkpoint does not."""

    def __init__(self, run_job: Callable[[DiskJob], None]) -> None:
        """``run_job`` starts a job elsewhere; ``finished`` must be called on the loop thread afterwards."""
        self._run_job = run_job
        self._waiting: deque[_Queued] = deque()
        self._running: _Queued | None = None

    def submit(self, job: DiskJob, done: BulkDone) -> None:
        """Run ``job`` after those submitted before."""
        self._waiting.append(_Queued(job, done))
        self._start_next()

    def finished(self, error: StorageError | None) -> None:
        """The job that was out ran to its end, or found that its bytes are no checkpoint."""
        running = self._running
        assert running is not None, "jobs are handed out one at a time"
        self._running = None
        running.done(error)
        self._start_next()

    def _start_next(self) -> None:
        if self._running is None and self._waiting:
            self._running = self._waiting.popleft()
            self._run_job(self._running.job)
