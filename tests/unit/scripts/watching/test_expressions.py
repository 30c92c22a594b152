"""Rules and dashboard ask for metrics that there are, with labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from quorate.scripts.cli.__main__ import _COMMANDS
from quorate.scripts.watching.files import DASHBOARD, RULES, SCRAPE, content
from tests.alerts.expressions import Asked, asked_for
from tests.integration.controllers.test_metrics_page import PAGE, listed

#: Put on everything by Prometheus.
SCRAPED = frozenset({"job", "instance"})
OF_PROMETHEUS = {"up": frozenset[str](), "ALERTS": frozenset({"alertname", "alertstate"})}
OF_THE_LIBRARY = ("process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(content(RULES))["groups"] for rule in group["rules"]]


def queries(found: Any) -> Iterator[str]:
    """All of a dashboard, wherever they stand in it."""
    if isinstance(found, dict):
        yield from (value for key, value in found.items() if key == "expr")
        yield from (matched[1] for key, value in found.items() if key == "query" and isinstance(value, str)
                    if (matched := re.fullmatch(r"label_values\((\w+), \w+\)", value)))  # fmt: skip
        for value in found.values():
            yield from queries(value)
    elif isinstance(found, list):
        for value in found:
            yield from queries(value)


def served() -> dict[str, frozenset[str]]:
    """By all processes: the page lists exactly that, to which a test of running processes holds it."""
    page = listed("Controllers") | listed("Brokers")
    text = PAGE.read_text(encoding="utf-8")
    histograms = {
        name for name, labels in page.items()
        if re.search(rf"`{name}(?:{{[a-z,]+}})?` \| (?:histogram|sum and count)", text)
    }  # fmt: skip
    found = {name: labels for name, labels in page.items() if name not in histograms}
    for name in histograms:
        found |= {f"{name}_{part}": page[name] for part in ("sum", "count")}
        found[f"{name}_bucket"] = page[name] | {"le"}
    return found | OF_PROMETHEUS | dict.fromkeys(OF_THE_LIBRARY, frozenset[str]())


SERVED = served()
DASHBOARD_QUERIES = list(queries(json.loads(content(DASHBOARD))))


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in rules()), *DASHBOARD_QUERIES])
def test_expression_asks_for_metrics_and_labels_that_are_served(expression: str) -> None:
    asked = asked_for(expression)
    assert asked.metrics
    assert asked.metrics.keys() - SERVED.keys() == set()
    for name, labels in asked.metrics.items():
        assert labels <= SERVED[name] | SCRAPED, name
    has = frozenset().union(*(SERVED[name] for name in asked.metrics))
    assert asked.grouping <= has | SCRAPED


def test_each_rule_says_what_is_wrong_how_bad_it_is_and_what_to_run() -> None:
    assert len(rules()) >= 10
    for rule in rules():
        assert rule["alert"].startswith("Quorate")
        assert rule["labels"].keys() == {"severity"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        commands = re.findall(r"`quorate ([a-z-]+)", rule["annotations"]["description"])
        assert commands
        assert set(commands) <= _COMMANDS.keys()
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))


def test_every_panel_asks_for_something_and_lies_beside_the_others() -> None:
    panels = json.loads(content(DASHBOARD))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["targets"], panel["title"]


def test_jobs_of_the_scrape_config_are_those_that_rules_and_dashboard_name() -> None:
    config = yaml.safe_load(content(SCRAPE))
    jobs = [job["job_name"] for job in config["scrape_configs"]]
    variables = {one["name"]: one for one in json.loads(content(DASHBOARD))["templating"]["list"]}
    assert jobs == [variables["job"]["current"]["value"], variables["broker_job"]["current"]["value"]]
    assert all(re.fullmatch("quorate-.*", job) for job in jobs)
    assert config["rule_files"] == [RULES]


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("up == 0", Asked({"up": frozenset()}, frozenset())),
        (
            'histogram_quantile(0.9, sum by (job, le) (rate(x_bucket{job=~"a|b", i!="c"}[5m]))) > 0.1',
            Asked({"x_bucket": frozenset({"job", "i"})}, frozenset({"job", "le"})),
        ),
        (
            "max(a and on (instance) b == 1) or -c < 1e9",
            Asked({"a": frozenset(), "b": frozenset(), "c": frozenset()}, frozenset({"instance"})),
        ),
        ("sum(increase(a[1h])) by (kind) < Inf", Asked({"a": frozenset()}, frozenset({"kind"}))),
        ("a and b == 1", Asked({"a": frozenset(), "b": frozenset()}, frozenset())),
    ],
)
def test_expressions_are_read(expression: str, asked: Asked) -> None:
    assert asked_for(expression) == asked


def test_what_is_no_expression_is_not_read() -> None:
    with pytest.raises(ValueError, match="'; drop' is nothing"):
        asked_for("up; drop")
