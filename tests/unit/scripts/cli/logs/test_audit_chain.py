"""`quorate audit verify`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.audit_log import AuditLog
from quorate.controller.logs.read_log import ReadLog
from quorate.controller.logs.refusal_log import RefusalLog
from quorate.metadata_log.audit.audit_lines import audit_files
from quorate.metadata_log.audit.read_lines import READ_FILES
from quorate.metadata_log.audit.refusal_lines import Refusal
from quorate.scripts.cli.logs.audit_chain import app

ANA = Origin("User:ana", "10.0.0.1", "a1")


def verify(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A controller that ran three times, and wrote what it decided and refused."""
    for start in range(3):
        audit, refusals = AuditLog(tmp_path, lambda: 1), RefusalLog(tmp_path)
        audit.start()
        for number in range(4 * start, 4 * start + 4):
            audit.note(DecidedWrite("create_topics", ANA, number, number + 1, None))
        refusals.note(Refusal("POST /v1/topics", "User:eve", "10.0.0.9", "INVALID_REQUEST"), f"r{start}", "no")
        refusals.newest(1)
        audit.close()
    return tmp_path


def test_what_was_written_over_several_starts_is_one_chain(directory: Path) -> None:
    code, out = verify(directory)

    assert code == 0
    assert [line.strip() for line in out.splitlines() if "lines in" in line] == [
        "12 lines in 3 files",
        "3 lines in 1 files",
    ]
    assert out.count("  OK") == 2
    changes, refusals = map(json.loads, verify("--json", directory)[1].splitlines())
    assert (changes["broken"], changes["end"] in out, refusals["end"] in out) == (None, True, True)


def test_first_line_that_was_changed_is_named(directory: Path) -> None:
    file = audit_files(directory)[1]
    file.write_bytes(file.read_bytes().replace(b"User:ana", b"User:bob", 2))

    code, out = verify(directory)

    assert code == 1
    assert f"BROKEN: {file}, line 1: is not as it was written" in out


def test_files_can_be_named_and_what_is_not_there_is_said(directory: Path, tmp_path: Path) -> None:
    assert verify(*audit_files(directory))[0] == 0
    assert verify(*audit_files(directory)[::2])[0] == 1
    (tmp_path / "empty").mkdir()
    for name, why in (("none", "there is no such file or directory"), ("empty", "holds no audit lines (audit/)")):
        code, out = verify(tmp_path / name)
        assert (code, out) == (1, f"{tmp_path / name}\n  NOT READABLE: {why}\n")


def test_reads_are_a_chain_where_they_are_written_down_and_are_shown(directory: Path) -> None:
    log = ReadLog(directory)
    for principal in ("User:ana", "User:eve"):
        log.note("GET /v1/users", ANA._replace(principal=principal, proof="scram"))
    log.flush()
    assert verify(directory)[1].splitlines()[-1] == "3 chains: 3 as written, 0 broken, 0 not readable"
    shown = CliRunner().invoke(app, ["reads", str(directory)], catch_exceptions=False).stdout.splitlines()
    assert [line.split()[2:7] for line in shown] == [
        ["TIMES", "REQUEST", "PRINCIPAL", "PROOF", "PROXY"],
        ["1", "GET", "/v1/users", "User:ana", "scram"],
        ["1", "GET", "/v1/users", "User:eve", "scram"],
    ]
    last = CliRunner().invoke(app, ["reads", str(directory), "--json", "--limit", "1"], catch_exceptions=False)
    assert json.loads(last.stdout)["principal"] == "User:eve"
    (file,) = READ_FILES.of(directory)
    file.write_bytes(file.read_bytes().replace(b"User:eve", b"User:ana"))
    assert verify(directory)[0] == 1


def test_reads_of_what_is_no_directory_are_refused_and_that_there_are_none_is_said(
    directory: Path, tmp_path: Path
) -> None:
    wrong = CliRunner().invoke(app, ["reads", str(directory), str(tmp_path / "nowhere")])
    in_a_row = "".join(wrong.output.replace("│", "").split())
    assert (wrong.exit_code, f"{tmp_path}/nowhereisnodirectory" in in_a_row) == (2, True)
    none = CliRunner().invoke(app, ["reads", str(directory)])
    said = f"quorate: {directory} has no lines about reads: audit.reads is off, or nobody has read\n"
    assert (none.exit_code, none.stderr, none.stdout.split()[0]) == (0, said, "TIME")


def test_what_is_wrong_with_one_directory_keeps_nobody_from_the_next(directory: Path) -> None:
    (directory / "empty").mkdir()
    named = (directory / "none", directory / "empty", directory)
    code, out = verify(*named)
    assert (code, out.count("NOT READABLE"), out.count("  OK")) == (1, 2, 2)
    assert out.splitlines()[-1] == "4 chains: 2 as written, 0 broken, 2 not readable"
    read = [json.loads(line) for line in verify("--json", *named)[1].splitlines()]
    assert [one["unreadable"] is None for one in read] == [False, False, True, True]
    file = audit_files(directory)[0]
    file.write_bytes(file.read_bytes().replace(b"User:ana", b"User:bob", 1))
    code, out = verify(directory, directory)
    assert (code, out.splitlines()[-1]) == (1, "4 chains: 2 as written, 2 broken, 0 not readable")
