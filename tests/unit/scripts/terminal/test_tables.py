"""The one form of tables, and of what stands in them."""

from __future__ import annotations

import pytest

from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from quorate.scripts.cli.topics.partition_rows import directory_text
from quorate.scripts.terminal.output import ago, counted
from quorate.scripts.terminal.tables import columns, table

HEADS = ("NAME", "LAG(RECORDS)", "SEEN", "ELR")


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    rows = [HEADS, ("a", "7", "1.7 s ago", "-"), ("longer", "2805", "-", "11,12")]
    assert columns(rows) == [
        "NAME    LAG(RECORDS)       SEEN  ELR",
        "a                  7  1.7 s ago  -",
        "longer          2805          -  11,12",
    ]


@pytest.mark.parametrize(
    "cells", [("1", "12"), ("0.5%", "100%"), ("3 h 20 min ago", "94 ms ago"), ("40 (+2)", "7 (-1)"), ("1.5 MB", "-")]
)
def test_what_is_a_number_with_units_is_one(cells: tuple[str, str]) -> None:
    lines = columns([(cell, "x") for cell in cells])
    width = max(map(len, cells))
    assert lines == [f"{cell:>{width}}  x" for cell in cells]


@pytest.mark.parametrize("cells", [("1", "none"), ("11,12", "3"), ("1-2", "10-20"), ("v1", "v22"), ("-", "")])
def test_what_is_no_number_stays_to_the_left(cells: tuple[str, str]) -> None:
    lines = columns([(cell, "x") for cell in cells])
    assert all(line.startswith(cell) for line, cell in zip(lines, cells, strict=True))


@pytest.mark.parametrize(
    ("elr", "wide", "heads"),
    [
        ("-", False, "NAME  LAG(RECORDS)  SEEN"),
        ("11", False, "NAME  LAG(RECORDS)  SEEN  ELR"),
        ("-", True, "NAME  LAG(RECORDS)  SEEN  ELR"),
    ],
)
def test_column_without_anything_is_left_out_where_that_says_nothing(elr: str, wide: bool, heads: str) -> None:
    """LAG is not among those that may be: that nobody knows it is worth a column."""
    lines = table(HEADS, [("a", "-", "now", "-"), ("b", "-", "now", elr)], wide=wide, may_hide=("ELR", "SEEN"))
    assert lines[0] == heads
    assert len(lines) == 3


def test_table_without_rows_is_its_heads() -> None:
    assert table(HEADS, [], wide=False, may_hide=("ELR",)) == ["NAME  LAG(RECORDS)  SEEN"]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"), (0, "0 ms ago"), (999, "999 ms ago"), (1_689, "1.7 s ago"), (99_900, "99.9 s ago"),
        (125_000, "2 min 5 s ago"), (12_000_000, "3 h 20 min ago"),
    ],
)  # fmt: skip
def test_times_are_in_the_unit_that_fits(milliseconds: int | None, text: str) -> None:
    assert ago(milliseconds) == text


def test_digits_of_sentences_are_grouped() -> None:
    assert (counted(1, "topic"), counted(2_805, "topic")) == ("1 topic", "2,805 topics")


def test_reserved_directories_have_names() -> None:
    reserved = (DIRECTORY_UNASSIGNED, DIRECTORY_LOST, DIRECTORY_MIGRATING)
    assert [directory_text(one) for one in reserved] == ["UNASSIGNED", "LOST", "MIGRATING"]
    assert directory_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
