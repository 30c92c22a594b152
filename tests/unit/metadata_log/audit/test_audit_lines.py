"""Lines about who asked for what: whole ones come back, others are left out."""

from __future__ import annotations

import json
from pathlib import Path

from quorate.metadata_log.audit.audit_lines import (
    AUDIT_DIRECTORY,
    AuditLine,
    audit_file_name,
    audit_files,
    decode_audit_lines,
    encode_audit_lines,
)

LINES = [
    AuditLine(1, 0, 5, "activation", None, None, None),
    AuditLine(3, 5, 6, "create_topics", "User:zoë", "10.0.0.1", "a1"),
]


def test_lines_come_back_as_they_were() -> None:
    assert list(decode_audit_lines(encode_audit_lines(LINES)[0])) == LINES


def test_line_is_what_json_makes_of_it() -> None:
    for line in (*LINES, AuditLine(1, 2, 3, 'a "b" \\ \n \x00', "U\u00fc\U0001f600", "", None)):
        text = encode_audit_lines([line])[0].split(b" ", 2)[2]
        assert text == json.dumps(line, separators=(",", ":")).encode() + b"\n"


def test_line_that_is_cut_or_damaged_is_left_out() -> None:
    data = encode_audit_lines(LINES)[0]

    for length in range(len(data)):
        assert list(decode_audit_lines(data[:length])) in ([], LINES[:1], LINES)
    for place in range(len(data)):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        assert [line for line in decode_audit_lines(flipped) if line not in LINES] == []


def test_files_are_found_oldest_first(tmp_path: Path) -> None:
    (tmp_path / AUDIT_DIRECTORY).mkdir()
    names = [audit_file_name(line) for line in LINES]
    for name in reversed(names):
        (tmp_path / AUDIT_DIRECTORY / name).touch()

    assert [file.name for file in audit_files(tmp_path)] == names
    assert [file.name for file in audit_files(tmp_path / AUDIT_DIRECTORY)] == names
