"""Which refusals are counted, by what names; that names are given, and are the page's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.connections.http_counts import CONTROLLER_LIMITS, SERVER_LIMITS, HttpCounts, limit_of
from quorate.controller.quotas.entities import CONNECTION_RATE
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, Overloaded
from tests.architecture.source_tree import ROOT, dotted, modules

PAGE = Path(ROOT) / "docs" / "metrics.md"
#: Of whoever reads an answer: the limit is known to who refused.
READERS = ("quorate.controller.api.errors",)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (Overloaded("too much", "event_queue"), "event_queue"),
        (HttpRefusal(413, "too long"), "body_bytes_max"),
        (HttpRefusal(431, "too long"), "head_bytes_max"),
        (HttpRefusal(408, "too slow", ErrorCode.REQUEST_TIMED_OUT), "head_timeout_ms"),
        (ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too often"), "controller_mutation_rate"),
        (HttpRefusal(404, "nothing there"), None),
        (ApiError(ErrorCode.REQUEST_TIMED_OUT, "too late"), None),
        (NotController(None, "nobody leads"), None),
        (ValueError("our own"), None),
    ],
)
def test_refusal_is_counted_by_the_limit_that_was_its_reason(error: Exception, limit: str | None) -> None:
    counts = HttpCounts()
    counts.note_failure(error)
    assert limit_of(error) == limit
    assert counts.refused == ({} if limit is None else {limit: 1})


def test_copy_stays_as_it_is() -> None:
    counts = HttpCounts()
    counts.connections = [1, 2]
    counts.note_answer("GET /livez", 0.003)
    copied = counts.copy()
    counts.note_answer("GET /livez", 0.003)
    counts.note_failure(HttpRefusal(413, "too long"))
    counts.connections = []
    assert copied.seconds["GET /livez"].counts == [0, 1, 0, 0, 0, 0, 0, 0]
    assert (copied.refused, len(copied.connections)) == ({}, 2)


def limits_given() -> dict[str, list[str]]:
    """Where ``Overloaded`` and its kind are raised -> the limits, as they are written there; none: it has none."""
    found: dict[str, list[str]] = {}
    for module in modules("broker", "controller", "quorum"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and dotted(node.func) in ("Overloaded", "NoPlace"):
                limit = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
                found.setdefault(module.name, []).append(limit)
    return found


def test_whoever_refuses_for_too_much_names_the_limit_and_the_page_has_it() -> None:
    given = limits_given()
    assert [name for name, limits in given.items() if "" in limits] == list(READERS)
    literal = {ast.literal_eval(limit) for limits in given.values() for limit in limits if limit[:1] == "'"}
    named = {"forwarded_requests", "feed_fetches", "connections_max", CONNECTION_RATE}
    refused = {"body_bytes_max", "head_bytes_max", "head_timeout_ms", "controller_mutation_rate"}

    table = PAGE.read_text(encoding="utf-8").split("| limit | refused |\n|---|---|\n")[1].split("\n\n")[0]
    listed = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    assert len(literal) > 10
    assert sorted(listed) == sorted(literal | named | refused)
    assert sorted(CONTROLLER_LIMITS) == sorted(listed), "each is counted from 0 on"


def test_known_limits_are_counted_from_nothing_on() -> None:
    counts = HttpCounts(SERVER_LIMITS)
    counts.note_failure(HttpRefusal(413, "too long"))
    counts.note_failure(Overloaded("too much", "event_queue"))
    assert counts.copy().refused == {**dict.fromkeys(SERVER_LIMITS, 0), "body_bytes_max": 1, "event_queue": 1}
