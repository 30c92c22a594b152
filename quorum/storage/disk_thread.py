"""A thread that runs disk jobs in order and reports back to the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from quorate.metadata_log.disk import DiskJob, drain

#: Called on the disk thread with the job and what it raised, None when it ran to its end.
Report = Callable[[DiskJob, Exception | None], None]


class DiskThread:
    """One job at a time, in the order given. Owns nothing but the thread."""

    def __init__(self, name: str, report: Report) -> None:
        self._report = report
        self._jobs: SimpleQueue[DiskJob | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: DiskJob) -> None:
        """Run ``job`` after those before it."""
        self._jobs.put(job)

    def close(self, timeout: float) -> bool:
        """End the thread behind the jobs that are there. Whether it has ended within ``timeout`` seconds."""
        self._jobs.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                drain(job)
            except Exception as error:  # noqa: BLE001  # reported: whoever owns the job decides what it means
                self._report(job, error)
            else:
                self._report(job, None)
