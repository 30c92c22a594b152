"""The audit log: what is written down, and what is dropped."""

from __future__ import annotations

import errno
import os
from io import FileIO
from pathlib import Path

import pytest

from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs import audit_log
from quorate.controller.logs.audit_log import AuditLog
from quorate.metadata_log.audit.audit_lines import AuditLine, audit_file_offset, audit_files, decode_audit_lines
from quorate.metadata_log.audit.chained_lines import verify_chain
from quorate.metadata_log.errors import ApiError, ErrorCode

ANA = Origin("User:ana", "10.0.0.1", "a1")


def written(directory: Path, *writes: DecidedWrite) -> list[AuditLine]:
    log = AuditLog(directory, lambda: 7)
    log.start()
    for write in writes:
        log.note(write)
    log.close()
    return [line for file in audit_files(directory) for line in decode_audit_lines(file.read_bytes())]


def test_events_that_wrote_records_are_written_down(tmp_path: Path) -> None:
    refused = ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, "no")

    lines = written(
        tmp_path,
        DecidedWrite("create_topics", ANA, 5, 9, None),
        DecidedWrite("create_topics", ANA, 9, 9, refused),
        DecidedWrite("broker_heartbeat", ANA, 9, 9, None),
        DecidedWrite("no_op", None, 9, 10, None),
        DecidedWrite("fence_stale_broker", None, 10, 12, None),
    )

    assert lines == [
        AuditLine(7, 5, 9, "create_topics", *ANA[:3]),
        AuditLine(7, 10, 12, "fence_stale_broker", None, None, None),
    ]


def test_files_are_replaced_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "RETAINED_BYTES", 300)
    for number in range(10):
        written(tmp_path, DecidedWrite("create_topics", ANA, number, number + 1, None))

    kept = [line for file in audit_files(tmp_path) for line in decode_audit_lines(file.read_bytes())]
    assert [line.base_offset for line in kept] == list(range(10 - len(kept), 10))
    assert 2 <= len(kept) <= 6


def test_files_that_are_old_go_and_what_is_left_is_a_chain(tmp_path: Path) -> None:
    for number in range(4):
        written(tmp_path, DecidedWrite("create_topics", ANA, number, number + 1, None))
    old = audit_files(tmp_path)[:2]
    for at, file in enumerate(old):
        os.utime(file, (at, at))
    written(tmp_path, DecidedWrite("create_topics", ANA, 4, 5, None))

    assert [audit_file_offset(file) for file in audit_files(tmp_path)] == [2, 3, 4]
    assert verify_chain(audit_files(tmp_path)).broken is None


def test_file_is_written_to_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path, lambda: 1)
    for number, seconds in ((0, 1e6), (1, 1e6), (2, 0.0)):
        monkeypatch.setattr(audit_log, "FILE_SECONDS", seconds)
        log.note(DecidedWrite("create_topics", ANA, number, number + 1, None))
        log.page(0, None, 1)
    log.start()
    log.close()

    assert [audit_file_offset(file) for file in audit_files(tmp_path)] == [0, 2]


def test_line_that_was_not_finished_on_a_full_disk_breaks_no_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_a_part(file: FileIO, data: bytes) -> None:
        file.write(data[:20])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = AuditLog(tmp_path, lambda: 1)
    for number in range(3):
        with monkeypatch.context() as patched:
            if number == 1:
                patched.setattr(audit_log, "_write_all", write_a_part)
            log.note(DecidedWrite("create_topics", ANA, number, number + 1, None))
            log.page(0, None, 1)
    log.start()
    log.close()

    assert (log.dropped, [file.read_bytes().count(b"\n") for file in audit_files(tmp_path)]) == (1, [1, 1])
    assert verify_chain(audit_files(tmp_path)).broken is None


def test_lines_beyond_what_may_wait_are_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "WAITING_MAX", 2)
    log = AuditLog(tmp_path, lambda: 1)
    for number in range(5):
        log.note(DecidedWrite("create_topics", ANA, number, number + 1, None))

    assert log.dropped == 3


def test_directory_that_takes_no_files_costs_the_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("no directory")
    log = AuditLog(tmp_path, lambda: 1)
    log.start()
    log.note(DecidedWrite("create_topics", ANA, 0, 1, None))
    log.close()

    assert log.dropped == 1


def test_what_waits_is_on_the_page(tmp_path: Path) -> None:
    """Whoever asks right after a change finds it: the thread writes twice a second only."""
    log = AuditLog(tmp_path, lambda: 1)
    log.note(DecidedWrite("create_topics", ANA, 5, 9, None))
    page = log.page(8, None, 10)
    log.start()
    log.close()

    assert page.lines == [AuditLine(1, 5, 9, "create_topics", *ANA[:3])]


def test_offsets_that_are_decided_again_begin_a_file(tmp_path: Path) -> None:
    """What a leader decided and did not get committed, it decides anew in a later epoch."""
    epochs = iter((3, 3, 5, 5))
    log = AuditLog(tmp_path, lambda: next(epochs))
    for base, end in ((100, 200), (200, 210), (150, 151), (151, 152)):
        log.note(DecidedWrite("create_topics", None, base, end, None))
    page = log.page(0, None, 10)
    log.start()
    log.close()

    assert [file.name[:31] for file in audit_files(tmp_path)] == [
        "00000000000000000100-0000000003", "00000000000000000150-0000000005",
    ]  # fmt: skip
    assert [(line.epoch, line.base_offset) for line in page.lines] == [(3, 100), (5, 150), (5, 151), (3, 200)]
