"""Which pages of a table are not those of another one."""

from __future__ import annotations

import random

import pytest

from quorate.snapshots.table.pages import Page, other_pages


@pytest.mark.parametrize("seed", range(20))
def test_other_pages_are_new_ones_and_those_beyond_the_end(seed: int) -> None:
    draw = random.Random(seed)
    old = [Page.blank(3) for _ in range(draw.randrange(8))]
    new = [page if draw.random() < 0.6 else page.copy() for page in old[: draw.randrange(len(old) + 1)]]
    new += [Page.blank(3) for _ in range(draw.randrange(4))]
    expected = [number for number, page in enumerate(new) if number >= len(old) or page is not old[number]]
    assert other_pages(old, tuple(new)) == expected


def test_other_pages_of_one_table_are_none() -> None:
    pages = (Page.blank(1), Page.blank(2))
    assert other_pages(pages, pages) == []
    assert other_pages((), pages) == [0, 1]
    assert other_pages(pages, ()) == []
