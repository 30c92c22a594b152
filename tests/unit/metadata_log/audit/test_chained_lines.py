"""Chains of lines: what was changed, added or removed is found, wherever it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.metadata_log.audit.chained_lines import (
    BEGIN,
    chain_end,
    cut_unfinished,
    decode_chained,
    encode_chained,
    verify_chain,
)

TEXTS = [b'["%d"]' % number for number in range(12)]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A chain through three files; the second comes last by its name."""
    found, end = [], BEGIN
    for at, (name, texts) in enumerate((("a", TEXTS[:4]), ("c", TEXTS[4:8]), ("b", TEXTS[8:]))):
        data, end = encode_chained(texts, end)
        found.append(tmp_path / name)
        found[-1].write_bytes(data)
        os.utime(found[-1], (at, at))
    return sorted(found)


def entries(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def test_whole_chain_goes_through_its_files_in_the_order_they_were_written(files: list[Path]) -> None:
    verdict = verify_chain(files)

    assert (verdict.files, verdict.lines, verdict.begin, verdict.broken) == (3, 12, BEGIN, None)
    assert verdict.end == chain_end(files) == encode_chained(TEXTS, BEGIN)[1]
    assert [line.text for line in decode_chained(files[0].read_bytes())] == TEXTS[:4]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_line_that_was_changed_or_removed_or_added_is_found(files: list[Path], name: str, place: int) -> None:
    file = next(one for one in files if one.name == name)
    before = entries(file)
    forged, _ = encode_chained([b'["forged"]'], next(decode_chained(before[place])).after)
    is_newest, is_oldest = (name, place) == ("b", 3), (name, place) == ("a", 0)
    for changed in ([forged], [], [before[place], forged]):
        # Nothing behind the newest tells of it, and the oldest may be gone by retention.
        is_seen = len(changed) == 2 or not (is_newest or (is_oldest and not changed))
        file.write_bytes(b"".join([*before[:place], *changed, *before[place + 1 :]]))
        if is_seen:
            assert verify_chain(files).broken is not None, changed
    file.write_bytes(b"".join([*before[:place], before[place].replace(b'"', b"'"), *before[place + 1 :]]))
    assert verify_chain(files).broken == (file, place + 1, "is not as it was written")


def test_break_in_a_file_names_the_first_line_behind_it(files: list[Path]) -> None:
    before = entries(files[1])
    files[1].write_bytes(b"".join([before[0], *before[2:]]))

    broken = verify_chain(files).broken

    assert broken is not None
    assert (broken.file, broken.line) == (files[1], 2)
    assert "does not follow the line before it" in broken.why


def test_file_that_is_missing_in_the_middle_is_found_and_one_that_retention_removed_is_none(files: list[Path]) -> None:
    a, b, c = files
    broken = verify_chain([a, b]).broken
    assert broken is not None
    assert "a file is missing" in broken.why
    verdict = verify_chain([b, c])
    assert (verdict.broken, verdict.lines, verdict.begin) == (None, 8, encode_chained(TEXTS[:4], BEGIN)[1])


def test_line_that_was_never_finished_is_no_break(files: list[Path]) -> None:
    with files[0].open("ab") as opened:
        opened.write(b"0123")
    assert verify_chain(files).broken is None

    cut_unfinished(files[0])

    assert len(files[0].read_bytes().splitlines()) == 4
    assert files[0].read_bytes().endswith(b"\n")


def test_no_files_are_a_chain_of_nothing() -> None:
    assert (verify_chain([]).broken, chain_end([])) == (None, BEGIN)
