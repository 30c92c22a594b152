"""The record of decisions: who asked, in files; the cluster's changes, in the log; each decision, for debugging."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.logs.audit_log import AuditLog
from quorate.controller.logs.audit_reading import AuditReading
from quorate.controller.logs.event_performance import EventPerformance
from quorate.controller.logs.read_log import ReadLog
from quorate.controller.logs.reads import Reads
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.controller.logs.refusals import Refusals
from quorate.controller.logs.state_log import StateLog
from quorate.controller.reads.broker_reports import BrokerReports
from quorate.metadata_log.log.segment_log import MetadataLog

log = structlog.get_logger()


class Account(NamedTuple):
    """One process's account of decisions and refusals."""

    audit: AuditReading
    refusals: Refusals
    reads: Reads
    #: Write what waits, and end.
    close: Callable[[], None]


def keep_account(directory: Path, controller: QuorumController, *, is_logged: bool, has_reads: bool) -> Account:
    """Write down in the metadata directory what is decided and refused from now on; log decisions if that is wanted.

    ``is_logged``: a busy controller decides thousands of changes a second. ``has_reads``: write down what is read, too.
    The account is the caller's to close.
    """
    audit, refusals = AuditLog(directory, lambda: controller.epoch), RefusalLog(directory)
    audit.start()
    refusals.start()
    read_log = ReadLog(directory) if has_reads else None
    if read_log is not None:
        read_log.start()
    controller.on_decided = partial(_note_and_log, audit) if is_logged else audit.note

    def close() -> None:
        audit.close()
        refusals.close()
        if read_log is not None:
            read_log.close()

    return Account(AuditReading(audit), Refusals(refusals), Reads(read_log), close)


def tell_state(controller: QuorumController, broker_reports: BrokerReports, segments: MetadataLog) -> StateLog:
    """Log what happens to the cluster from now on, and which events take long. The caller closes the state log."""
    state = StateLog(controller, broker_reports.ms_ago, lambda: segments.start_offset)
    state.start()
    kept = controller.on_decided

    def note(write: DecidedWrite) -> None:
        if kept is not None:
            kept(write)
        if write.has_changed:
            state.note(write)

    controller.on_decided = note
    events = controller.events
    events.observe = EventPerformance(controller.scheduler.monotonic_ms, events.observe).note
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
