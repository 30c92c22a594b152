"""Refused requests: what is written down, and that a flood of them fills nothing."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quorate.controller.logs import counted_lines
from quorate.controller.logs.counted_lines import KINDS_MAX, LINES_BURST, LINES_PER_SECOND
from quorate.controller.logs.refusal_log import MESSAGE_CHARS_MAX, RefusalLog
from quorate.metadata_log.audit.chained_lines import BEGIN, encode_chained
from quorate.metadata_log.audit.refusal_lines import REFUSED_FILES, Refusal, RefusalLine, read_refusals

ANA = Refusal("POST /v1/topics", "User:ana", "10.0.0.1", "TOPIC_ALREADY_EXISTS", "scram")
BO = ANA._replace(principal="User:bo")


def test_requests_of_one_kind_are_one_line_with_their_count(tmp_path: Path) -> None:
    log = RefusalLog(tmp_path)
    for number in range(5):
        log.note(ANA, f"r{number}", f"Topic 'orders' already exists. {number}")
    log.note(BO, "b", "m" * 1_000, count=7)
    with capture_logs() as said:
        first, second = log.newest(10)
    assert first[1:] == (5, *ANA[:3], "r0", "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists. 0", "scram")
    assert (second.times, second.principal, second.message) == (7, "User:bo", "m" * MESSAGE_CHARS_MAX)
    assert [(line["event"], line["times"], line["principal"]) for line in said] == [
        ("request.refused", 5, "User:ana"),
        ("request.refused", 7, "User:bo"),
    ]
    assert log.newest(1) == [second]


def test_line_of_before_there_were_proofs_is_read(tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    old = [1, 1, "POST /v1/topics", "User:ana", "10.0.0.1", "r", "INVALID_REQUEST", "no"]
    (tmp_path / "audit" / REFUSED_FILES.current).write_bytes(encode_chained([json.dumps(old).encode()], BEGIN)[0])
    (line,) = read_refusals(tmp_path, 10)
    assert (line.message, line.proof) == ("no", None)


def kinds(log: RefusalLog, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        log.note(ANA._replace(principal=f"User:{number}"), "r", "no")


def test_kinds_that_have_no_room_are_counted(tmp_path: Path) -> None:
    log = RefusalLog(tmp_path)
    kinds(log, KINDS_MAX + 30)
    lines = log.newest(1_000)
    assert len(lines) == KINDS_MAX + 1
    assert lines[-1][1:] == (30, None, None, None, None, None, None, None)
    assert sum(line.times for line in lines) == KINDS_MAX + 30


def test_refusal_that_comes_while_others_are_written_is_not_lost(tmp_path: Path) -> None:
    """The writer comes in the middle of the count, on its thread, and takes what waits before or after it."""
    log = RefusalLog(tmp_path)
    kinds(log, 1)
    writer = threading.Thread(target=log.flush)

    def line(time_ms: int) -> RefusalLine:
        writer.start()
        writer.join(0.2)  # it may have to wait for the end of the count
        return RefusalLine(time_ms, 1, *BO[:3], "r", "INVALID_REQUEST", "no")

    log.count(BO, 1, line)
    writer.join()
    assert {line.principal for line in log.newest(10)} == {"User:0", "User:bo"}


def test_flood_has_a_rate_and_every_refusal_is_counted(tmp_path: Path) -> None:
    """Ever new kinds for ten minutes: two lines a second and what may come at once, not a hundred and twenty-eight."""
    log = RefusalLog(tmp_path)
    start = log._written_at
    for half_second in range(1_200):
        kinds(log, 200, first=200 * half_second)
        log.write(start + half_second / 2)
    lines = read_refusals(tmp_path, 10**6)
    assert LINES_BURST <= len(lines) <= LINES_BURST + 1 + 600 * LINES_PER_SECOND
    waiting = sum(line.times for line in log._waiting.values()) + log._uncounted
    assert sum(line.times for line in lines) + waiting == 1_200 * 200


def test_flood_of_strangers_leaves_the_lines_of_those_who_are_known(tmp_path: Path) -> None:
    log = RefusalLog(tmp_path)
    start = log._written_at
    for half_second in range(1_200):
        for number in range(KINDS_MAX):
            asked = ANA._replace(principal=None, address=f"10.0.{half_second}.{number}", proof=None)
            log.note(asked, "r", "nobody has this token")
        if half_second % 20 == 0:
            kinds(log, 1, first=half_second)
        log.write(start + half_second / 2)
    lines = read_refusals(tmp_path, 10**6)
    assert [line.principal for line in lines if line.principal] == [f"User:{number}" for number in range(0, 1_200, 20)]
    assert len(lines) <= LINES_BURST + 1 + 600 * LINES_PER_SECOND
    waiting = sum(line.times for line in log._of_strangers.values()) + log._uncounted_strangers
    assert sum(line.times for line in lines) + waiting == 1_200 * KINDS_MAX + 60


def strangers(log: RefusalLog, count: int) -> None:
    for number in range(count):
        log.note(ANA._replace(principal=None, address=f"10.0.0.{number}", proof=None), "r", "nobody has this token")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_strangers_whose_half_has_one_line_are_not_all_nameless(tmp_path: Path, count: int) -> None:
    log = RefusalLog(tmp_path)
    log._may_write = LINES_BURST / 2 + 1.5
    strangers(log, count)
    log.write(log._written_at)
    lines = read_refusals(tmp_path, 10)
    assert lines[0].address == "10.0.0.0"
    assert [(line.address, line.times) for line in lines[1:]] == ([(None, count - 1)] if count > 1 else [])


@pytest.mark.parametrize("may_write", [LINES_BURST / 2, 3.5, 0.0])
def test_log_that_is_closed_has_counted_all_strangers_who_waited(tmp_path: Path, may_write: float) -> None:
    log = RefusalLog(tmp_path)
    log._may_write = may_write
    strangers(log, 5)
    log.start()
    log.close()
    lines = read_refusals(tmp_path, 10)
    assert lines[0].address == "10.0.0.0"
    assert sum(line.times for line in lines) == 5


def test_two_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_lines, "FILE_BYTES", 500)
    log = RefusalLog(tmp_path)
    for number in range(20):
        kinds(log, 1, first=number)
        log.newest(1)
    files = {file.name: file.stat().st_size for file in (tmp_path / "audit").iterdir()}
    assert set(files) == set(REFUSED_FILES)
    assert max(files.values()) < 800
    assert [line.principal for line in read_refusals(tmp_path, 2)] == ["User:18", "User:19"]


def test_damaged_line_is_left_out(tmp_path: Path) -> None:
    log = RefusalLog(tmp_path)
    kinds(log, 3)
    log.newest(1)
    file = tmp_path / "audit" / REFUSED_FILES.current
    data = bytearray(file.read_bytes())
    data[data.index(b"User:1") + 5] ^= 1
    file.write_bytes(data[:-10])
    assert [line.principal for line in read_refusals(tmp_path, 10)] == ["User:0"]


def test_directory_that_takes_no_files_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("no directory")
    log = RefusalLog(tmp_path)
    log.start()
    log.note(ANA, "r", "no")
    with capture_logs() as said:
        log.close()
    assert [line["event"] for line in said] == ["request.refused", "refusals.not_written"]
