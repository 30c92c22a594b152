"""One line in the process's log for each change that was decided or refused, with who asked for it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog

from controller.audit_log import AuditLog
from controller.quorum_controller import QuorumController
from controller.seams import DecidedWrite

log = structlog.get_logger()


def keep_account(directory: Path, controller: QuorumController, *, is_logged: bool) -> AuditLog:
    """Write down in the metadata directory, and log if that is wanted, what the controller decides from now on.

    ``is_logged``: a busy controller decides thousands of changes a second. The audit log is the caller's to close.
    """
    audit = AuditLog(directory, lambda: controller.epoch)
    audit.start()
    controller.on_decided = partial(_note_and_log, audit) if is_logged else audit.note
    return audit


def _note_and_log(audit: AuditLog, write: DecidedWrite) -> None:
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
