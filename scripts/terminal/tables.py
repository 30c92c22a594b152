"""Tables, the same in every command: plain text of cells under each other, which `grep`, `awk` and people can read.

Words stand to the left and numbers to the right. Digits of a table are not grouped, for they are copied into other
commands; those of sentences are (``output.counted``). A unit stands in the head of its column, as `LAG(RECORDS)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Final

import typer

from quorate.scripts.terminal.harmless import shown_name

Wide = Annotated[bool, typer.Option("--wide", help="With the columns that are empty, too.")]

#: A number, or several with units: 12, 99.5%, 1.7 s ago, 3 h 20 min, 40 (+2).
_NUMBER: Final = re.compile(r"[-+]?\d[\d.]*%?( [a-zA-Z]+| [-+]?\d[\d.]*| \([-+]\d+\))*")
_EMPTY: Final = frozenset({"", "-"})


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of all rows under each other. A first row in capitals is their heads."""
    harmless = [[shown_name(cell) for cell in row] for row in rows]
    has_heads = bool(rows) and any(rows[0]) and all(cell == cell.upper() for cell in rows[0])
    cells = list(zip(*harmless, strict=True))
    forms = [_form(column, column[1:] if has_heads else column) for column in cells]
    return ["  ".join(form.format(cell) for form, cell in zip(forms, row, strict=True)).rstrip() for row in harmless]


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, wide: bool, may_hide: Collection[str] = ()
) -> list[str]:
    """The lines of a table. Columns of ``may_hide`` that are empty in every row are left out, unless it is to be wide.

    A column that is none of them is always there: that it is empty says something.
    """
    found = [tuple(row) for row in rows]
    shown = [
        place
        for place, head in enumerate(heads)
        if wide or head not in may_hide or any(row[place] not in _EMPTY for row in found)
    ]
    return columns([[row[place] for place in shown] for row in (tuple(heads), *found)])


def _form(column: Sequence[str], values: Sequence[str]) -> str:
    """The format of a column's cells."""
    said = [cell for cell in values if cell not in _EMPTY]
    is_number = bool(said) and all(_NUMBER.fullmatch(cell) for cell in said)
    return f"{{:{'>' if is_number else '<'}{max(map(len, column))}}}"
