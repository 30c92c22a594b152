"""Answers who asked for what, from all directories and controllers given to a command, or why that is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from quorate.metadata_log.audit.audit_lines import AuditLine, audit_files, decode_audit_lines
from quorate.metadata_log.audit.audit_pages import AuditPage
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.difference.history import Audit, HistoryStep


class SourceSilent(QuorateError):
    """A controller does not say what it has written down."""


class AuditSource(Protocol):
    """One controller's own account."""

    #: Which controller; None where nothing says so.
    node_id: int | None
    #: Why it says nothing; empty where it does.
    silence: str

    @property
    def first_offset(self) -> int | None:
        """Base offset of its oldest line; None: it has none."""

    def within(self, base_offset: int, end_offset: int) -> Audit:
        """Its lines, all those of events that wrote between two offsets among them."""


class FileSource:
    """``AuditSource``: a directory."""

    silence = ""

    def __init__(self, directory: Path) -> None:
        lines = [line for file in audit_files(directory) for line in decode_audit_lines(file.read_bytes())]
        self.node_id = _node_of(directory)
        self.first_offset = min((line.base_offset for line in lines), default=None)
        self._audit = Audit(lines)

    def within(self, base_offset: int, end_offset: int) -> Audit:
        return self._audit


def _node_of(directory: Path) -> int | None:
    """The node that the directory belongs to; None where nothing says so."""
    file = directory / META_PROPERTIES_NAME
    return decode_meta_properties(file.read_bytes(), str(file)).node_id if file.is_file() else None


class LiveSource:
    """``AuditSource``: a running controller, asked for the lines about the records that are told of now."""

    def __init__(self, node_id: int, url: str, fetch: Callable[[int], AuditPage]) -> None:
        """``fetch`` gives the first lines from an offset on, and raises ``SourceSilent``."""
        self.node_id: int | None = node_id
        self.url = url
        self.silence = ""
        self.first_offset: int | None = None
        self._fetch = fetch
        self._audit = Audit(())
        #: What has been fetched: from where to where; None: to the end.
        self._start: int = 0
        self._end: int | None = 0

    def within(self, base_offset: int, end_offset: int) -> Audit:
        is_here = self._start <= base_offset and (self._end is None or end_offset <= self._end)
        if not is_here and not self.silence:
            try:
                self._read(base_offset, end_offset)
            except SourceSilent as error:
                self.silence = str(error)
        return self._audit

    def _read(self, base_offset: int, end_offset: int) -> None:
        lines: list[AuditLine] = []
        at: int | None = base_offset
        while at is not None and (at == base_offset or at < end_offset):
            page = self._fetch(at)
            lines += page.lines
            at, self.first_offset = page.next_offset, page.first_offset
        self._audit, self._start, self._end = Audit(lines), base_offset, at


class AllSources:
    """``snapshots.difference.history.AuditLookup`` over all that are given."""

    def __init__(self, sources: Sequence[AuditSource]) -> None:
        self.sources = sources

    def line_at(self, offset: int, epoch: int) -> AuditLine | None:
        """The event that wrote the record at an offset in an epoch."""
        found = (source.within(offset, offset + 1).line_at(offset, epoch) for source in self.sources)
        return next((line for line in found if line is not None), None)

    def ends_within(self, base_offset: int, end_offset: int, epoch: int) -> list[int]:
        """Offsets at which events begin or end inside a batch, ascending."""
        wanted = base_offset, end_offset
        return sorted({at for source in self.sources for at in source.within(*wanted).ends_within(*wanted, epoch)})

    def why_unknown(self, step: HistoryStep) -> str | None:
        """The reason why nobody says by which event a step was made; None where somebody does, or nobody knows who
        decided it.
        """
        if step.line is not None or step.decided_by is None:
            return None
        source, who = self._source(step.decided_by), f"controller {step.decided_by}"
        if source is None:
            return f"it was decided by {who}, whose lines are not given"
        if source.silence:
            return f"it was decided by {who}, which does not answer"
        if source.first_offset is None:
            return f"{who}, which decided it, has no lines"
        if step.base_offset < source.first_offset:
            return f"the lines of {who}, which decided it, begin at offset {source.first_offset}"
        return f"{who}, which decided it, has no line of it"

    def is_untold(self, step: HistoryStep) -> bool:
        """Whether a controller that was not heard decided a step: that one may know who asked for it."""
        if step.line is not None or step.decided_by is None:
            return False
        source = self._source(step.decided_by)
        return source is None or bool(source.silence)

    def _source(self, node_id: int) -> AuditSource | None:
        return next((source for source in self.sources if source.node_id == node_id), None)
