"""The outcomes of drills, for people: lines of text, and one self-contained page with a picture of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from quorate.scripts.drills.outcome import DrillEvent, DrillMeasurement, DrillOutcome

_WIDTH: Final = 1_000
_LEFT: Final = 50
_RIGHT: Final = 20
_CURVE_HEIGHT: Final = 110
_ROW_HEIGHT: Final = 18
_BUCKETS: Final = 240
_COLOURS: Final = {"fault": "#c0392b", "repair": "#2471a3", "seen": "#1e8449"}
_VERDICTS: Final = {"passed": "#1e8449", "failed": "#c0392b", "broken": "#b9770e", "skipped": "#7f8c8d"}

_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; color: #1c2833; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .2rem; }
table { border-collapse: collapse; margin: .6rem 0; } th, td { text-align: left; padding: .25rem .9rem .25rem 0;
border-bottom: 1px solid #d5d8dc; vertical-align: top; } td.number { text-align: right; font-variant-numeric:
tabular-nums; } .verdict { color: #fff; border-radius: .3rem; padding: .05rem .5rem; font-size: .85rem; }
p { overflow-wrap: anywhere; } .reason { color: #c0392b; } .quiet { color: #566573; }
svg { width: 100%; height: auto; margin: .4rem 0; }
svg text { font: 12px system-ui, sans-serif; fill: #1c2833; } a { color: #2471a3; }
@media (max-width: 40rem) { body { margin: 1rem auto; } th, td { padding-right: .4rem; } }
"""


def lines(outcome: DrillOutcome) -> Iterator[str]:
    """One drill as text."""
    yield f"{outcome.drill}: {outcome.verdict}, {outcome.seconds:.0f} s"
    yield f"  {outcome.hypothesis}"
    for event in outcome.events:
        yield f"  {event.at_s:7.2f} s  {event.text}"
    for one in outcome.measured:
        yield f"  {'holds' if one.holds else 'FAILS'}  {one.expectation.meaning}: {_value(one)}"
    if outcome.noted:
        yield f"  noted  {', '.join(f'{_words(name)}: {_noted(value)}' for name, value in outcome.noted.items())}"
    if outcome.reason:
        yield f"  {outcome.reason}"


def page(outcomes: Sequence[DrillOutcome]) -> str:
    """All of them as one page, which needs no network."""
    passed = sum(one.verdict == "passed" for one in outcomes)
    begun = datetime.fromtimestamp(min(one.begun_at_ms for one in outcomes) / 1000, UTC).isoformat(" ", "seconds")
    skipped = sum(one.verdict == "skipped" for one in outcomes)
    title = f"Drills: {passed} of {len(outcomes)} passed" + (f", {skipped} skipped" if skipped else "")
    head = (
        f"<h1>{title}</h1>"
        f'<p class="quiet">{begun[:19]} UTC, {sum(one.seconds for one in outcomes):.0f} s. Each drill: a cluster of'
        " real processes in a steady state; a fault under a stream of writes; what was measured beside what was"
        " expected.</p>"
    )
    body = head + _table(outcomes) + "".join(_section(one) for one in outcomes)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style><body>{body}</body></html>\n"
    )


def _table(outcomes: Sequence[DrillOutcome]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{escape(one.drill)}">{escape(one.drill)}</a></td><td>{_badge(one)}</td>'
        f'<td class="number">{one.seconds:.0f} s</td><td>{escape(one.hypothesis)}</td></tr>'
        for one in outcomes
    )
    return f"<table><tr><th>drill<th>verdict<th>took<th>hypothesis</tr>{rows}</table>"


def _section(outcome: DrillOutcome) -> str:
    measured = "".join(
        f"<tr><td>{escape(one.expectation.meaning)}</td><td class=number>{_number(one.value)}</td>"
        f"<td class=number>≤ {one.expectation.at_most:g}</td><td>{'holds' if one.holds else 'fails'}</td></tr>"
        for one in outcome.measured
    )
    noted = ", ".join(f"{escape(_words(name))} {escape(_noted(value))}" for name, value in outcome.noted.items())
    reason = f'<p class="reason">{escape(outcome.reason)}</p>' if outcome.reason else ""
    return (
        f'<h2 id="{escape(outcome.drill)}">{escape(outcome.drill)} {_badge(outcome)}</h2>'
        f"<p>{escape(outcome.hypothesis)}.</p>{reason}{_picture(outcome)}<table><tr><th>measured<th>value<th>expected<th></tr>{measured}</table>"
        f'<p class="quiet">Cluster {escape(outcome.cluster_id)}: {outcome.controllers} controllers, {outcome.brokers}'
        f" brokers. {noted}</p>"
    )


def _badge(outcome: DrillOutcome) -> str:
    return f'<span class="verdict" style="background:{_VERDICTS[outcome.verdict]}">{outcome.verdict}</span>'


def _value(one: DrillMeasurement) -> str:
    return f"{_number(one.value)} (expected at most {one.expectation.at_most:g})"


def _noted(value: float | str) -> str:
    return value if isinstance(value, str) else _number(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.1f}".removesuffix(".0")


# --- the picture -------------------------------------------------------------------------------------


def _picture(outcome: DrillOutcome) -> str:
    """Acknowledged writes over time, and under them what happened, each at its moment."""
    end = max([outcome.seconds, *outcome.acknowledged_s, *(event.at_s for event in outcome.events)], default=1.0) or 1.0
    height = _CURVE_HEIGHT + 30 + _ROW_HEIGHT * len(outcome.events) + 10

    def x(at_s: float) -> float:
        return _LEFT + at_s / end * (_WIDTH - _LEFT - _RIGHT)

    parts = [*_bars(outcome, end, x(0), x(end)), *_axis(end, x)]
    for row, event in enumerate(outcome.events):
        parts += _mark(event, x(event.at_s), _CURVE_HEIGHT + 34 + row * _ROW_HEIGHT)
    label = f"Acknowledged writes and events of {outcome.drill} over {end:.0f} seconds"
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _bars(outcome: DrillOutcome, end: float, left: float, right: float) -> Iterator[str]:
    width_s = end / _BUCKETS
    counts = [0] * (_BUCKETS + 1)
    for at_s in outcome.acknowledged_s:
        counts[min(int(at_s / width_s), _BUCKETS)] += 1
    most = max(counts)
    yield f'<text x="4" y="12">writes acknowledged a second (most: {most / width_s:,.0f})</text>'
    step = (right - left) / _BUCKETS
    for bucket, count in enumerate(counts[:_BUCKETS]):
        if count:
            height = count / most * (_CURVE_HEIGHT - 20)
            y = _CURVE_HEIGHT - height
            yield (
                f'<rect x="{left + bucket * step:.1f}" y="{y:.1f}" width="{max(step - 0.4, 0.5):.1f}"'
                f' height="{height:.1f}" fill="#7fb3d5"/>'
            )


def _axis(end: float, x: Callable[[float], float]) -> Iterator[str]:
    yield f'<line x1="{x(0):.1f}" y1="{_CURVE_HEIGHT}" x2="{x(end):.1f}" y2="{_CURVE_HEIGHT}" stroke="#566573"/>'
    step = next(one for one in (1, 2, 5, 10, 20, 50, 100, 1_000) if end / one <= 12)
    for tick in range(0, int(end) + 1, step):
        yield f'<text x="{x(tick):.1f}" y="{_CURVE_HEIGHT + 15}" text-anchor="middle">{tick} s</text>'


def _mark(event: DrillEvent, x: float, y: float) -> Iterator[str]:
    colour = _COLOURS[event.kind]
    yield f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-dasharray="3 3"/>'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    anchor, shift = ("end", -8) if x > _WIDTH * 0.55 else ("start", 8)
    text = f"{event.at_s:.2f} s  {escape(event.text)}"
    yield f'<text x="{x + shift:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{text}</text>'
