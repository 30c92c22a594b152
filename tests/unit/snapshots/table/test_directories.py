"""Numbers of log directories, which a dictionary and its successors share, and others do not."""

from __future__ import annotations

import pytest

from quorate.snapshots.table.directories import DirectoryDictionary

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("before", "now", "holds"),
    [
        ([], [], True),
        ([], [A], True),
        ([A, B], [A, B], True),
        ([A, B], [A, B, C], True),
        ([A, B], [A], False),
        ([A, B], [B, A], False),
        ([A, B], [B, A, C], False),
        ([A, B], [A, C, B], False),
    ],
)
def test_numbers_hold_in_a_successor_and_in_what_is_numbered_alike(
    before: list[bytes], now: list[bytes], *, holds: bool
) -> None:
    assert DirectoryDictionary(before).is_continued_by(DirectoryDictionary(now)) is holds
    same = DirectoryDictionary(before).codes_in(DirectoryDictionary(now)).tolist() == list(range(3 + len(before)))
    assert same is holds
