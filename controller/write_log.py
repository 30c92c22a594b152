"""What is kept of decisions: who asked, in files; what became of the cluster, in the log; for debug each of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog

from controller.audit_log import AuditLog
from controller.http.heard import HeardBrokers
from controller.quorum_controller import QuorumController
from controller.seams import DecidedWrite
from controller.state_log import StateLog
from metadata_log.segment_log import MetadataLog

log = structlog.get_logger()


def keep_account(directory: Path, controller: QuorumController, *, is_logged: bool) -> AuditLog:
    """Write down in the metadata directory, and log if that is wanted, what the controller decides from now on.

    ``is_logged``: a busy controller decides thousands of changes a second. The audit log is the caller's to close.
    """
    audit = AuditLog(directory, lambda: controller.epoch)
    audit.start()
    controller.on_decided = partial(_note_and_log, audit) if is_logged else audit.note
    return audit


def tell_state(controller: QuorumController, heard: HeardBrokers, segments: MetadataLog) -> StateLog:
    """Log what happens to the cluster from now on. The state log is the caller's to close."""
    state = StateLog(controller, heard.ms_ago, lambda: segments.start_offset)
    state.start()
    kept = controller.on_decided

    def note(write: DecidedWrite) -> None:
        if kept is not None:
            kept(write)
        if write.has_changed:
            state.note(write)

    controller.on_decided = note
    return state


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
