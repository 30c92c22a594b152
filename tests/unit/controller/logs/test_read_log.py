"""Reads: one line for those of one kind, in a chain of their own."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from quorate.controller.decisions.origin import Origin
from quorate.controller.logs.read_log import ReadLog
from quorate.metadata_log.audit.chained_lines import verify_chain
from quorate.metadata_log.audit.read_lines import READ_FILES, read_reads
from quorate.metadata_log.audit.refusal_lines import read_refusals

ANA = Origin("User:ana", "10.0.0.1", "r1", proof="scram", proxy="User:gateway")


def test_reads_of_one_kind_are_one_line_with_their_count(tmp_path: Path) -> None:
    log = ReadLog(tmp_path)
    for number in range(3):
        log.note("GET /v1/users", ANA._replace(request_id=f"r{number}"))
    log.note("GET /v1/users", ANA._replace(proof="token"))
    with capture_logs() as said:
        log.flush()
    first, second = read_reads(tmp_path, 10)
    assert first[1:] == (3, "GET /v1/users", "User:ana", "10.0.0.1", "scram", "User:gateway", "r0")
    assert (second.times, second.proof) == (1, "token")
    assert [(line["event"], line["times"]) for line in said] == [("request.read", 3), ("request.read", 1)]
    assert read_reads(tmp_path, 1) == [second]
    assert read_refusals(tmp_path, 10) == []


def test_lines_of_several_starts_are_one_chain(tmp_path: Path) -> None:
    for number in range(3):
        log = ReadLog(tmp_path)
        log.start()
        log.note(f"GET /v1/{number}", ANA)
        log.close()
    verdict = verify_chain(READ_FILES.of(tmp_path))
    assert (verdict.lines, verdict.broken) == (3, None)
