"""Reading segments from the loop thread, beside the job that writes them."""

from __future__ import annotations

from quorate.metadata_log.disk import Disk, DiskFile, OpenMode
from quorate.metadata_log.segments.segment_files import segment_name


class SegmentReader:
    """One open handle for reading: whoever reads old batches reads them in order.

    Owned by the loop thread. It reads durable bytes only, so it never meets a write in flight.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._base = -1
        self._file: DiskFile | None = None

    def read(self, base: int, position: int, size: int) -> bytes:
        """Bytes of a segment; fewer than ``size`` at its end."""
        if self._file is None or self._base != base:
            self.forget()
            self._file = self._disk.open_file(f"{self._directory}/{segment_name(base)}", OpenMode.READ)
            self._base = base
        return self._file.pread(size, position)

    def forget(self) -> None:
        """Give the handle back: its segment may be gone, or be another file of the same name soon."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._base = -1
