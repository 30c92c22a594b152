"""One line in the process's log for each change that was decided or refused, with who asked for it."""

from __future__ import annotations

import structlog

from controller.audit_log import AuditLog
from controller.seams import DecidedWrite

log = structlog.get_logger()


def note_write(audit: AuditLog, write: DecidedWrite) -> None:
    """At debug level, for a busy controller decides thousands of changes a second; and in the audit log as always."""
    audit.note(write)
    origin, error = write.origin, write.error
    log.debug(
        "write.decided" if error is None else "write.refused",
        operation=write.name,
        principal=None if origin is None else origin.principal,
        address=None if origin is None else origin.address,
        request_id=None if origin is None else origin.request_id,
        base_offset=write.base_offset,
        end_offset=write.end_offset,
        **({} if error is None else {"error": error.code.name}),
    )
