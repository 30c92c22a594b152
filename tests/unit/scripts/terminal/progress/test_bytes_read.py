"""How far files are read: in bytes, and none twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.scripts.terminal.progress import line
from quorate.scripts.terminal.progress.bytes_read import reading_files
from quorate.scripts.terminal.progress.line import telling
from tests.waiting import eventually_sync

LOG = Path(__file__).parents[5] / "tests" / "data" / "kafka" / "static" / "m2" / "log"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "_EACH_S", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)


def test_all_that_was_read_is_told_of_all_that_lies_there(capsys: pytest.CaptureFixture[str]) -> None:
    total = sum(file.path.stat().st_size for file in find_files(LOG))
    told = ""

    def is_told() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return all_of_it in told

    all_of_it = f"quorate: reading {LOG}: {total / 1e6:.1f} of at most {total / 1e6:.1f} MB"
    with reading_files(LOG):
        for file in [*find_files(LOG), *find_files(LOG)]:
            for _ in iter_batches(file):
                pass
        eventually_sync(is_told, "all of it is told")


def test_place_where_nothing_can_be_read_is_left_to_whoever_reads(tmp_path: Path) -> None:
    with reading_files(tmp_path / "none"), telling(lambda _: "") as shown:
        assert shown._thread.ident is not None, "nobody else draws"
