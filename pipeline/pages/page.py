"""The page: blocks in the order in which they were added, rendered by a template, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.new_files import open_new
from quorate.pipeline.pages.cells import cell, is_number
from quorate.pipeline.pages.drawing import Plot

#: Rows of a table, unless more or fewer are asked for: about four printed pages.
ROWS_MAX: Final = 200

#: Characters: a longer text is broken anywhere, as a hash must be, a shorter one between its words or not at all.
_WORDS_MAX: Final = 32
_SHORT_MAX: Final = 20


class PageNotWritten(QuorateError):
    """The file of a page cannot be made. What was there before is still there."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A value of a table that leads to the section with this anchor."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    #: Class of the element.
    style: str
    #: Of the section that it leads to; empty: none.
    anchor: str = ""

    @classmethod
    def of(cls, value: Any) -> _Cell:
        anchor = value.anchor if isinstance(value, PageLink) else ""
        text = value.text if isinstance(value, PageLink) else cell(value)
        if is_number(value):
            return cls(text, "number")
        return cls(text, "long" if len(text) > _WORDS_MAX else "short" if len(text) <= _SHORT_MAX else "", anchor)


@dataclass(frozen=True, slots=True)
class _Block:
    """One part of the page; `kind` says which of the fields count."""

    kind: str
    title: str
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[_Cell, ...], ...] = ()
    cut: str = ""
    #: The figure as JSON that may stand inside a script element; None where the block is no plot.
    figure: Markup | None = None
    height: int = 0
    anchor: str = ""


class HtmlPage:
    """A page that is added to from top to bottom.

    Args:
        title: what it is about, with the cluster's name. subtitle: of when, up to where, from which files.
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self._title = title
        self._subtitle = subtitle
        self._blocks: list[_Block] = []

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """Add the few numbers that somebody in a hurry reads: (name, value) each."""
        self._blocks.append(_Block("facts", "", facts=tuple((name, cell(value)) for name, value in facts)))

    def section(self, title: str, text: str = "", anchor: str = "") -> None:
        """Begin a part of the page; the text says how to read what follows, a `PageLink` to the anchor leads here."""
        self._blocks.append(_Block("section", title, text, anchor=anchor))

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._blocks.append(_Block("text", "", text))

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        rows_max: int = ROWS_MAX,
        total: int | None = None,
        text: str = "",
    ) -> None:
        """Add a table of the first `rows_max` rows: the most telling ones first.

        Args:
            rows: values as `cells.cell` writes them, one for each column. total: how many rows there are, where
                `rows` itself does not hold all of them.
        """
        shown = list(islice(rows, rows_max + 1))
        is_cut = len(shown) > rows_max
        shown = shown[:rows_max]
        if total is None and isinstance(rows, Sequence):
            total = len(rows)
        self._blocks.append(
            _Block(
                "table",
                title,
                text,
                columns=tuple(columns),
                rows=tuple(tuple(map(_Cell.of, row)) for row in shown),
                cut=_cut(len(shown), total, is_cut=is_cut),
            )
        )

    def plot(self, title: str, plot: Plot, text: str = "") -> None:
        """Add what a function of `plots` or `spans` has drawn, with the note of what it left out."""
        # No `</script>`, and no `<!--`, can be in the text of a script element.
        figure = Markup(plot.figure.to_json().replace("<", "\\u003c"))
        self._blocks.append(_Block("plot", title, text, figure=figure, cut=plot.cut, height=plot.height))

    def render(self) -> str:
        """Return the page as one HTML document that refers to nothing outside itself."""
        environment = Environment(
            loader=PackageLoader("quorate.pipeline.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        has_plots = any(block.kind == "plot" for block in self._blocks)
        text: str = environment.get_template("page.html").render(
            title=self._title,
            subtitle=self._subtitle,
            blocks=self._blocks,
            plotly=Markup(get_plotlyjs()) if has_plots else None,
        )
        return text

    def write(self, path: Path) -> None:
        """Write the page to a file, whole or not at all.

        Raises:
            PageNotWritten: the file cannot be made.
        """
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            with open_new(unfinished) as file:
                file.write(self.render().encode())
            unfinished.replace(path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise PageNotWritten(f"the page {path} cannot be written: {error.strerror or error}") from error


def _cut(shown: int, total: int | None, *, is_cut: bool) -> str:
    if total is not None and total > shown:
        return f"The first {shown:,} of {total:,} rows; what the job itself tells or writes has all of them."
    return f"The first {shown:,} rows; what the job itself tells or writes has all of them." if is_cut else ""
