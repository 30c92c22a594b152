"""Who asked, by several controllers: what is fetched, and what is said where nothing is known."""

from __future__ import annotations

from pathlib import Path

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY, AuditLine, audit_file_name, encode_audit_lines
from quorate.metadata_log.audit.audit_pages import AuditPage
from quorate.scripts.cli.logs.audit_sources import AllSources, FileSource, LiveSource, SourceSilent
from quorate.snapshots.difference.history import HistoryStep

LINES = [AuditLine(1, base, base + 2, "create_topics", "User:ana", "10.0.0.1", str(base)) for base in range(10, 50, 2)]


class Answering:
    """A controller that answers with pages of so many lines, and counts how often it is asked."""

    def __init__(self, size: int = 4) -> None:
        self.size = size
        self.asked: list[int] = []

    def __call__(self, start_offset: int) -> AuditPage:
        self.asked.append(start_offset)
        due = [line for line in LINES if line.end_offset > start_offset]
        cut = due[self.size].base_offset if len(due) > self.size else None
        return AuditPage(due[: self.size], cut, LINES[0].base_offset)


def step(offset: int, decided_by: int | None, line: AuditLine | None = None) -> HistoryStep:
    return HistoryStep(offset, offset + 1, 1, 0, decided_by, line, ())


def test_page_is_fetched_once_for_all_records_on_it() -> None:
    answering = Answering()
    audit = AllSources([LiveSource(1, "http://a", answering)])

    assert [audit.line_at(offset, 1) for offset in range(10, 50)] == [line for line in LINES for _ in range(2)]
    assert answering.asked == [10, 18, 26, 34, 42]
    assert audit.line_at(50, 1) is None
    assert audit.line_at(5_000, 1) is None
    assert len(answering.asked) == 5


def test_pages_are_fetched_until_the_end_of_a_batch() -> None:
    answering = Answering()
    audit = AllSources([LiveSource(1, "http://a", answering)])

    assert audit.ends_within(20, 40, 1) == list(range(22, 40, 2))
    assert answering.asked == [20, 28, 36]


def test_controller_that_is_silent_is_asked_once() -> None:
    asked = []

    def silent(start_offset: int) -> AuditPage:
        asked.append(start_offset)
        raise SourceSilent("nobody is there")

    source = LiveSource(1, "http://a", silent)
    audit = AllSources([source, LiveSource(2, "http://b", Answering())])

    assert [audit.line_at(offset, 1) for offset in (10, 20)] == [LINES[0], LINES[5]]
    assert (asked, source.silence) == ([10], "nobody is there")
    assert audit.why_unknown(step(10, 1)) == "it was decided by controller 1, which does not answer"


def test_why_nothing_is_known_is_said(tmp_path: Path) -> None:
    kept, empty = tmp_path / "1", tmp_path / "2"
    for directory in (kept, empty):
        (directory / AUDIT_DIRECTORY).mkdir(parents=True)
        (directory / "meta.properties").write_text(
            f"node.id={directory.name}\ndirectory.id=0kgs-ZbNQUaARBvUiTWyXQ\nversion=1\ncluster.id=abc\n"
        )
    (kept / AUDIT_DIRECTORY / audit_file_name(LINES[0])).write_bytes(encode_audit_lines(LINES)[0])
    audit = AllSources([FileSource(kept), FileSource(empty)])

    assert audit.why_unknown(step(10, 1, LINES[0])) is None
    assert audit.why_unknown(step(10, None)) is None
    assert audit.why_unknown(step(5, 1)) == "the lines of controller 1, which decided it, begin at offset 10"
    assert audit.why_unknown(step(90, 1)) == "controller 1, which decided it, has no line of it"
    assert audit.why_unknown(step(90, 2)) == "controller 2, which decided it, has no lines"
    assert audit.why_unknown(step(90, 3)) == "it was decided by controller 3, whose lines are not given"
