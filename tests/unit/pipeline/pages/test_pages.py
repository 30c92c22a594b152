"""The page library: one document, no reference to the outside, every name escaped, cut where it would be too long."""

import json
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from quorate.pipeline.pages.cells import cell, duration
from quorate.pipeline.pages.page import HtmlPage, PageNotWritten
from quorate.pipeline.pages.plots import (
    BARS_MAX,
    HEAT_COLUMNS_MAX,
    OTHERS,
    POINTS_MAX,
    bars,
    by_day,
    heat_map,
    over_time,
)
from quorate.pipeline.pages.spans import SPANS_MAX, UP_TIME_COLOURS, TimelineSpan, spans

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOSTILE = '</script><script>alert(1)</script><a href="http://example.org">&amp;'
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Document(HTMLParser):
    """Elements as they open, with a check that each is closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self._open and self._open[-1] == "script" else self.texts).append(data)


def full_page() -> HtmlPage:
    page = HtmlPage(f"Page {HOSTILE}", HOSTILE)
    page.facts([(HOSTILE, 3061), ("Cluster", HOSTILE)])
    page.section(HOSTILE, HOSTILE)
    page.text(HOSTILE)
    page.table(HOSTILE, ["topic", HOSTILE], [(HOSTILE, 1), ("orders", None)], text=HOSTILE)
    hour = timedelta(hours=1)
    page.plot(HOSTILE, spans([TimelineSpan(HOSTILE, START, START + hour, HOSTILE, HOSTILE)]), HOSTILE)
    page.plot("lines", over_time([START, START + hour], {HOSTILE: [1, 2]}, unit=HOSTILE))
    page.plot("bars", bars([HOSTILE, 12], {HOSTILE: [1, 2]}))
    page.plot("heat", heat_map([HOSTILE], [HOSTILE, "b"], [[1, 2]], unit=HOSTILE))
    return page


def test_page_with_everything_on_it_parses_and_refers_to_nothing_outside() -> None:
    """A page is sent by mail and opened in ten years: nothing may be fetched, and the browser is told so."""
    document = Document(full_page().render())

    referring = {"src", "href", "action", "data", "srcset", "poster", "formaction", "background"}
    assert not [(tag, attributes) for tag, attributes in document.elements if referring & set(attributes)]
    assert not [tag for tag, _ in document.elements if tag in {"link", "iframe", "object", "embed", "base", "form"}]
    policy = next(a["content"] for _, a in document.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_names_with_markup_in_them_are_shown_as_they_are() -> None:
    """A topic's name is data, wherever it stands: no element and no script comes of it."""
    document = Document(full_page().render())

    assert not [tag for tag, _ in document.elements if tag == "a"]
    # The library, four figures, and the few lines that draw them.
    assert len(document.scripts) == 6
    assert sum(HOSTILE in text for text in document.texts) >= 8
    figures = [script for script in document.scripts if script.startswith('{"')]
    for figure in figures:
        json.loads(figure)
        # Labels of plots read a few tags themselves: there must be none left in them, but those of our own.
        assert "<" not in figure
        assert "\\u003cscript" not in figure
        assert "\\u003ca " not in figure


def test_page_without_plots_holds_no_library() -> None:
    """Tables alone are a page of a few kilobytes."""
    page = HtmlPage("Tables")
    page.table("Empty", ["a"], [])

    text = page.render()
    assert len(text) < 10_000
    assert "None." in text


def test_table_over_its_length_is_cut_and_says_so() -> None:
    """Whether all rows are given or only the first of them."""
    page = HtmlPage("Tables")
    page.table("Sequence", ["n"], [(n,) for n in range(500)], rows_max=10)
    page.table("Iterator", ["n"], ((n,) for n in range(500)), rows_max=10)
    page.table("Part", ["n"], [(1,)], total=7)
    page.table("Whole", ["n"], [(1,), (2,)])

    text = page.render()
    assert "The first 10 of 500 rows" in text
    assert "The first 10 rows" in text
    assert "The first 1 of 7 rows" in text
    assert text.count('class="cut"') == 3
    assert text.count("<tr>") == 4 + 10 + 10 + 1 + 2


def test_written_page_replaces_the_former_one_whole(tmp_path: Path) -> None:
    """No half page is ever seen, and nothing else is left in the directory."""
    out = tmp_path / "page.html"
    out.write_text("former")
    HtmlPage("New").write(out)

    assert out.read_text().startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [out]


def test_page_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    """One sentence with the path and the reason."""
    with pytest.raises(PageNotWritten, match=r"page\.html cannot be written: No such file"):
        HtmlPage("New").write(tmp_path / "missing" / "page.html")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (21247, "21,247"),
        (np.int64(21247), "21,247"),
        (0.12345, "0.1235"),
        (123456.7, "123,457"),
        ([11, 12], "11,12"),
        ([], "–"),
        (START, "2026-11-20 10:00:00"),
        (START.replace(microsecond=5000), "2026-11-20 10:00:00.005"),
        (timedelta(seconds=151), "2 min 31 s"),
        ("12", "12"),
    ],
)
def test_cell_of_each_kind_is_written_readably(value: object, text: str) -> None:
    """One way for all pages."""
    assert cell(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "12.3 ms"),
        (1.25, "1.25 s"),
        (60, "1 min"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (86_399, "23 h 59 min"),
        (90_000, "1 d 1 h"),
        (-5, "-5 s"),
    ],
)
def test_duration_is_said_in_its_two_largest_units(seconds: float, text: str) -> None:
    """Nobody divides by 3,600 while reading."""
    assert duration(seconds) == text


def test_spans_of_a_row_keep_their_order_and_colours() -> None:
    """The first row stands on top, a state has the colour that it was given."""
    hour = timedelta(hours=1)
    given = [
        TimelineSpan("broker 11", START, START + hour, "up"),
        TimelineSpan("broker 12", START, START + 2 * hour, "fenced", "session ended"),
        TimelineSpan("broker 11", START + hour, START + 2 * hour, "fenced"),
    ]
    figure = spans(given, colours=UP_TIME_COLOURS).figure

    assert list(figure.layout.yaxis.categoryarray) == ["broker 12", "broker 11"]
    assert [(trace.name, trace.marker.color) for trace in figure.data] == [
        ("up", UP_TIME_COLOURS["up"]),
        ("fenced", UP_TIME_COLOURS["fenced"]),
    ]
    assert list(figure.data[1].x) == [3_600_000, 2 * 3_600_000]
    assert figure.data[1].base[1] == "2026-11-20T10:00:00.000000"
    assert figure.data[1].hovertext[1].endswith("2 h<br>session ended")


def test_spans_too_many_to_draw_are_cut_and_say_so() -> None:
    """Rows from the end, then the shortest bars."""
    given = [
        TimelineSpan(f"p-{row}", START + timedelta(seconds=at), START + timedelta(seconds=at + 1), "11")
        for row in range(70)
        for at in range(150)
    ]
    plot = spans(given)

    assert plot.cut == f"The first 60 of 70 rows. The longest {SPANS_MAX:,} of 9,000 bars."
    assert len(plot.figure.data[0].x) == SPANS_MAX


def test_line_of_many_points_keeps_its_peaks_and_its_ends() -> None:
    """One second of trouble in a month must be seen."""
    values = np.zeros(1_000_000)
    values[777_777], values[-1] = 90.0, 5.0
    times = np.datetime64("2026-11-01") + np.arange(len(values)).astype("timedelta64[s]")
    line = over_time(times, {"offline": values}).figure.data[0]

    assert len(line.x) <= POINTS_MAX + 2
    assert max(line.y) == 90.0
    assert (line.x[0], line.y[-1]) == ("2026-11-01T00:00:00.000000", 5.0)
    assert list(line.x) == sorted(line.x)


def test_bars_of_ids_stand_as_names_and_are_cut() -> None:
    """Broker 1001 does not stand a thousand places from broker 1."""
    plot = bars([str(n) for n in range(1_000)], {"before": np.arange(1_000), "after": np.zeros(1_000)})

    assert plot.figure.layout.xaxis.type == "category"
    assert len(plot.figure.data[0].y) == BARS_MAX
    assert plot.cut == "The first 200 of 1,000."


def test_pile_of_more_parts_than_colours_joins_the_smallest() -> None:
    """Two parts of one colour cannot be told apart."""
    plot = bars(["a", "b"], {f"type {n}": [n, n] for n in range(20)}, is_stacked=True)

    assert [bar.name for bar in plot.figure.data] == [*(f"type {n}" for n in range(19, 12, -1)), OTHERS]
    assert list(plot.figure.data[-1].y) == [sum(range(13))] * 2


def test_days_too_many_for_bars_are_a_line_without_a_gap() -> None:
    """The last days of a long history are those that matter."""
    days = [date(2020, 1, 1) + timedelta(n) for n in range(1_000)]
    few, many = by_day(days[:10], {"versions": range(10)}), by_day(days, {"versions": range(1_000)})

    assert (few.figure.data[0].type, many.figure.data[0].type) == ("bar", "scatter")
    assert (many.cut, many.figure.data[0].x[-1][:10]) == ("", "2022-09-26")


def test_only_long_texts_of_a_table_are_broken_inside_a_word() -> None:
    """A hash must be, a broker's state must not."""
    page = HtmlPage("Tables")
    page.table("One", ["what", "hash", "n"], [("broker_crash", "0" * 64, 1)])

    text = page.render()
    assert '<td class="short">broker_crash</td>' in text
    assert f'<td class="long">{"0" * 64}</td>' in text
    assert '<td class="number">1</td>' in text


def test_heat_map_of_many_columns_keeps_the_highest_of_neighbours() -> None:
    """The worst minute of an hour colours the hour."""
    field = np.zeros((2, 5_000))
    field[1, 4_321] = 9.0
    plot = heat_map(["a", "b"], np.arange(5_000), field)

    drawn = np.asarray(plot.figure.data[0].z)
    assert drawn.shape == (2, HEAT_COLUMNS_MAX)
    assert drawn[1].max() == 9.0
    assert plot.cut == "5,000 columns in 500: the highest of each."
