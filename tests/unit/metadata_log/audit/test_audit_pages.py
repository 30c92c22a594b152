"""Pages of audit lines: what is in files comes out once, in order, whatever is asked for."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.audit import audit_pages
from quorate.metadata_log.audit.audit_lines import AuditLine, audit_file_name, encode_audit_lines
from quorate.metadata_log.audit.audit_pages import AuditPage, read_audit_page


def write(directory: Path, *files: list[AuditLine]) -> None:
    for lines in files:
        (directory / audit_file_name(lines[0])).write_bytes(encode_audit_lines(lines)[0])


def run_of(epoch: int, base: int, count: int, drawn: Random) -> list[AuditLine]:
    """Events of one leader, some with records of nobody's in between."""
    lines = []
    for _ in range(count):
        end = base + drawn.randint(1, 5)
        lines.append(AuditLine(epoch, base, end, "create_topics", "User:ana", "10.0.0.1", f"{base:x}" * 4))
        base = end + drawn.choice((0, 0, 3))
    return lines


def walked(directory: Path, start: int, end: int | None, lines_max: int) -> list[AuditLine]:
    """All pages, one behind the other."""
    lines: list[AuditLine] = []
    at: int | None = start
    while at is not None:
        page = read_audit_page(directory, at, end, lines_max)
        assert page.next_offset is None or page.next_offset > at
        lines += [line for line in page.lines if line not in lines]
        at = page.next_offset
    return lines


def test_directory_without_files_has_one_empty_page(tmp_path: Path) -> None:
    assert read_audit_page(tmp_path / "none", 0, None, 10) == AuditPage([], None, None)


def test_line_is_on_the_page_of_every_record_it_is_about(tmp_path: Path) -> None:
    line = AuditLine(1, 10, 20, "create_topics", None, None, None)
    write(tmp_path, [line])

    for start, end in ((0, 11), (10, 11), (19, 20), (0, None)):
        assert read_audit_page(tmp_path, start, end, 1) == AuditPage([line], None, 10)
    for start, end in ((0, 10), (20, 30), (20, None)):
        assert read_audit_page(tmp_path, start, end, 1) == AuditPage([], None, 10)


@pytest.mark.parametrize("seed", range(30))
def test_pages_of_any_size_hold_what_all_lines_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Several files, some of them of an epoch that did not commit; blocks of all sizes."""
    drawn = Random(seed)
    monkeypatch.setattr(audit_pages, "_BLOCK_BYTES", drawn.choice((200, 500, 16 * 1024)))
    files, base, epoch = [], 0, 1
    for _ in range(drawn.randint(1, 6)):
        run = run_of(epoch, base, drawn.randint(1, 60), drawn)
        files.append(run)
        epoch += drawn.randint(0, 1)
        base = run[-1].end_offset + drawn.randint(0, 9)
        if drawn.random() < 0.5:
            epoch, base = epoch + 1, max(0, base - drawn.randint(1, 100))
    write(tmp_path, *files)
    every = sorted((line for lines in files for line in lines), key=lambda line: (line.base_offset, line.epoch))

    for _ in range(10):
        start, size = drawn.randint(0, base + 10), drawn.choice((None, 1, 50))
        end = None if size is None else start + size
        due = [line for line in every if line.end_offset > start and (end is None or line.base_offset < end)]
        assert walked(tmp_path, start, end, drawn.choice((1, 2, 7, 1_000))) == due


def test_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    lines = run_of(1, 0, 40, Random(7))
    write(tmp_path, lines)
    file = tmp_path / audit_file_name(lines[0])
    data = bytearray(file.read_bytes())
    data[data.index(b"\n", 1000) + 15] ^= 1
    file.write_bytes(data)

    assert len(walked(tmp_path, 0, None, 1_000)) == 39
