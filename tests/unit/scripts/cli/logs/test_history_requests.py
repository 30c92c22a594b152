"""The newest requests of a log: how far back is gone for them, and which of them are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY, AuditLine, audit_file_name, encode_audit_lines
from quorate.metadata_log.records.records import ConfigRecord, PartitionRecord, TopicRecord
from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal import exit_codes
from tests.pipeline_logs import TIME, LogWriter

A = bytes(15) + b"a"
LINES = [
    AuditLine(1, 0, 3, "create_topics", "User:ana", "10.0.0.1", "r1"),
    AuditLine(1, 3, 4, "incremental_alter_configs", "User:bo", "10.0.0.2", "r2"),
    AuditLine(1, 4, 5, "incremental_alter_configs", "User:tool", "10.0.0.3", "r3", proxy="User:ana"),
    AuditLine(1, 5, 6, "expire_configs", None, None, None),
]


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """A topic, four changes of configs, the last of which nobody wrote down; each in a segment; who asked beside it."""
    made = LogWriter(tmp_path / "log")
    made.append([TopicRecord("a", A), *(PartitionRecord(n, A, (1, 2), (1, 2), leader=1) for n in range(2))])
    for number in range(4):
        made.roll()
        made.append([ConfigRecord(4, "", "log.retention.hours", str(number))])
    directory = made.path / AUDIT_DIRECTORY
    directory.mkdir()
    (directory / audit_file_name(LINES[0])).write_bytes(encode_audit_lines(LINES)[0])
    return made


def run(log: LogWriter, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, the lines of output but for the heads, and standard error."""
    words = ["history", "--from", str(log.path), *arguments]
    seen = CliRunner().invoke(make_app(words), words)
    return seen.exit_code, [line for line in seen.stdout.splitlines() if not line.startswith("TIME")], seen.stderr


def shown(log: LogWriter, *arguments: str) -> list[int]:
    """The offsets of the lines."""
    code, lines, _ = run(log, *arguments)
    assert code == exit_codes.DONE
    return [int(line.split()[1]) for line in lines]


def test_request_is_one_line_with_time_principal_event_and_effect(log: LogWriter) -> None:
    _, lines, said = run(log)
    assert said == ""
    assert [line.split(maxsplit=5)[1:] for line in lines[:2]] == [
        ["0", "User:ana", "create_topics", "r1", "topic a created: 2 partitions x 2"],
        ["3", "User:bo", "incremental_alter_configs", "r2", "config broker/ added: log.retention.hours 0"],
    ]
    assert lines[0].startswith("2023-11-14T22:13:20.000+00:00  ")
    assert "  User:tool through User:ana  " in lines[2]
    assert [line.split()[2:4] for line in lines[3:]] == [["controller", "expire_configs"], ["-", "-"]]


def test_newest_lines_are_shown_at_the_end_or_first(log: LogWriter) -> None:
    assert shown(log) == [0, 3, 4, 5, 6]
    assert shown(log, "--newest-first") == [6, 5, 4, 3, 0]
    assert shown(log, "--limit", "2") == [5, 6]
    assert run(log, "--limit", "2")[2] == "quorate: the last 2 are shown; --limit shows more\n"
    assert run(log, "--limit", "5")[2] == ""


def test_lines_are_chosen_by_principal_part_and_time(log: LogWriter) -> None:
    assert shown(log, "--by", "ana") == shown(log, "--by", "User:ana") == [0, 4]
    assert shown(log, "--by", "ana", "--by", "User:bo") == [0, 3, 4]
    assert shown(log, "--type", "topics") == [0]
    assert shown(log, "--type", "configs", "--by", "ana") == [4]
    assert shown(log, "--since", "4", "--until", "6") == [4, 5]
    assert shown(log, "--since", "2023-11-14T22:13:24Z", "--until", "2023-11-14T22:13:25Z") == [4, 5]
    nothing = run(log, "--since", "1h")
    said = (
        "quorate: the log ends at offset 7, time 2023-11-14T22:13:26.000+00:00, before what --since names\n"
        "quorate: the log tells of no change of anything that was asked for\n"
    )
    assert nothing == (exit_codes.DONE, [], said)
    for wrong in (("--type", "topic"), ("--since", "2 h")):
        assert run(log, *wrong)[0] == exit_codes.USAGE


def test_full_history_and_its_json_have_every_change_that_was_asked_for(log: LogWriter) -> None:
    steps = [json.loads(line) for line in run(log, "--json", "--type", "partitions", "--by", "ana")[1]]
    assert [(step["base_offset"], step["principal"], len(step["changes"])) for step in steps] == [
        (1, "User:ana", 1), (2, "User:ana", 1),
    ]  # fmt: skip
    full = run(log, "--full", "--limit", "1", "--until", "6")[1]
    assert full[0].startswith("offset 5  epoch 1  ")
    assert full[1:] == ["  ~ configs broker/: log.retention.hours 1 -> 2"]


@pytest.mark.parametrize("bound", [("--limit", "1"), ("--since", "5"), ("--since", "2023-11-14T22:13:25Z")])
def test_log_is_read_back_to_the_nearest_checkpoint_only(log: LogWriter, bound: tuple[str, str]) -> None:
    """What lies further back is damaged, and nobody notices."""
    log.epoch = 1
    log.checkpoint(5)
    segment = log.directory / f"{4:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    assert shown(log, *bound)[-1] == 6
    assert run(log, "--limit", "3")[0] == exit_codes.REFUSED


def test_who_led_is_known_though_the_epoch_began_before_the_checkpoint(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log")
    log.elect(7)
    for number in range(4):
        log.append([ConfigRecord(4, "", "log.retention.hours", str(number))])
    log.roll()
    log.append([ConfigRecord(4, "", "log.retention.hours", "9")])
    log.checkpoint(5)
    (step,) = (json.loads(line) for line in run(log, "--json", "--limit", "1")[1])
    assert (step["base_offset"], step["time_ms"], step["decided_by"]) == (5, TIME + 5000, 7)
