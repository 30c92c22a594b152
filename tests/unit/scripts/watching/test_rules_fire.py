"""What fires each alert rule: series that drills left behind, and made-up ones, judged by Prometheus itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.scripts.drills.runner import DRILLS
from quorate.scripts.watching.files import DASHBOARD, RULES, SCRAPE, content
from tests.alerts.captures import EVERY_S, PLAYED_S, kept, kept_of
from tests.architecture.source_tree import ROOT
from tests.unit.scripts.watching.test_expressions import queries, rules

PAGE = ROOT / "docs" / "watching.md"
RULE_NAMES = [str(rule["alert"]) for rule in rules()]
PROMTOOL = shutil.which("promtool")
with_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: it evaluates the rules")

#: Work and no faults: these take as long in life as they do in a drill.
ON_PURPOSE = frozenset(
    {
        "rolling-upgrade",
        "rolling-restart",
        "rotate-ca",
        "rotate-certificates",
        "rotate-secret",
        "rotate-bearer-tokens",
        "rotate-token-secret",
    }
)
#: A process that is away for a minute.
OF_A_RESTART = {"QuorateProcessDown", "QuorateControllersUnreachable"}

ACTIVE = 'quorate_active_controller_count{job="quorate-controllers", instance="a"}'
UNREACHABLE = ACTIVE.replace("active_controller_count", "raft_number_unknown_voter_connections")
#: Rule -> series with which it fires, and with which it does not. 60 scrapes, one each 15 s, are a quarter of an hour.
MADE_UP: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "QuorateProcessDown": ({'up{job="quorate-brokers"}': "1 0x60"}, {'up{job="quorate-brokers"}': "1 0x3 1x60"}),
    "QuorateNoActiveController": (
        {'up{job="quorate-controllers"}': "1x60", ACTIVE: "1 0x60"},
        {'up{job="quorate-controllers"}': "1x60", ACTIVE: "1 0x3 1x60"},
    ),
    "QuorateControllersUnreachable": (
        {ACTIVE: "1x60", UNREACHABLE: "1x60"},
        {ACTIVE: "1x60", UNREACHABLE: "1x3 0x60"},
    ),
    "QuorateNotVoting": ({'quorate_raft_is_voting{job="j"}': "0x60"}, {'quorate_raft_is_voting{job="j"}': "0x19 1x60"}),
    "QuorateElections": (
        {'quorate_raft_elections_won_total{job="j"}': "0x20 1 2 3 4 5 6x20"},
        {'quorate_raft_elections_won_total{job="j"}': "0x20 1 2 3 4 5x40"},
    ),
    "QuorateOfflinePartitions": (
        {ACTIVE: "1x60", 'quorate_offline_partitions_count{job="quorate-controllers", instance="a"}': "7x60"},
        # Of a standby, which may be behind.
        {ACTIVE: "0x60", ACTIVE.replace('"a"', '"b"'): "1x60",
         'quorate_offline_partitions_count{job="quorate-controllers", instance="a"}': "7x60"},
    ),
    "QuoratePartitionsUnderMinIsr": (
        {ACTIVE: "1x60", 'quorate_under_min_isr_partitions{job="quorate-controllers", instance="a"}': "7x60"},
        {ACTIVE: "1x60", 'quorate_under_min_isr_partitions{job="quorate-controllers", instance="a"}': "7x7 0x60"},
    ),
    "QuoratePartitionsUnderReplicated": (
        {ACTIVE: "1x60", 'quorate_under_replicated_partitions{job="quorate-controllers", instance="a"}': "7x60"},
        {ACTIVE: "1x60", 'quorate_under_replicated_partitions{job="quorate-controllers", instance="a"}': "7x39 0x60"},
    ),
    "QuorateBrokersFenced": (
        {ACTIVE: "1x60", 'quorate_fenced_broker_count{job="quorate-controllers", instance="a"}': "1x60"},
        {ACTIVE: "1x60", 'quorate_fenced_broker_count{job="quorate-controllers", instance="a"}': "1x7 0x60"},
    ),
    "QuorateUncleanElections": (
        {'quorate_unclean_leader_elections_total{job="j"}': "0x20 1x20"},
        {'quorate_unclean_leader_elections_total{job="j"}': "7x60"},
    ),
    "QuorateStatesDiffer": (
        {'quorate_digest_differences_total{job="j"}': "0x20 1x20"},
        {'quorate_digest_differences_total{job="j"}': "0x60"},
    ),
    "QuorateNodeFaults": ({'quorate_faults{job="j"}': "0 2x60"}, {'quorate_faults{job="j"}': "2x3 0x60"}),
    "QuorateDiskSlow": (
        {
            'quorate_disk_sync_seconds_bucket{job="j", le="0.1"}': "0+8x60",
            'quorate_disk_sync_seconds_bucket{job="j", le="0.25"}': "0+10x60",
            'quorate_disk_sync_seconds_bucket{job="j", le="+Inf"}': "0+10x60",
        },
        {
            'quorate_disk_sync_seconds_bucket{job="j", le="0.1"}': "0+19x60",
            'quorate_disk_sync_seconds_bucket{job="j", le="0.25"}': "0+20x60",
            'quorate_disk_sync_seconds_bucket{job="j", le="+Inf"}': "0+20x60",
        },
    ),
    "QuorateDiskNearlyFull": (
        {'quorate_disk_free_bytes{job="j"}': "1073741823x60"},
        {'quorate_disk_free_bytes{job="j"}': "1073741824x60"},
    ),
    "QuorateCheckpointsFail": (
        {'quorate_checkpoints_failed_total{job="j"}': "0x20 1x20"},
        {'quorate_checkpoints_failed_total{job="j"}': "3x60"},
    ),
    "QuorateCommitsSlow": (
        {
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="0.5"}': "0+90x60",
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="1.0"}': "0+100x60",
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="+Inf"}': "0+100x60",
        },
        {
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="0.5"}': "0+100x60",
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="1.0"}': "0+100x60",
            'quorate_raft_commit_latency_seconds_bucket{job="j", le="+Inf"}': "0+100x60",
        },
    ),
    "QuorateCertificateEnds": (
        {'quorate_certificate_expiry_seconds{job="j"}': "604800-15x60"},
        {
            'quorate_certificate_expiry_seconds{job="j"}': "Inf",
            'quorate_broker_certificate_expiry_seconds{job="k"}': "1604800-15x60",
        },
    ),
    "QuorateLimitsRefuse": (
        {'quorate_broker_http_limit_refusals_total{job="j", limit="connections_max"}': "0+1x60"},
        {'quorate_http_limit_refusals_total{job="j", limit="event_queue"}': "0x20 30x40"},
    ),
    "QuorateProofsFail": (
        {'quorate_authentication_failures_total{job="j", shown="bearer"}': "0x20 150x40"},
        {'quorate_authentication_failures_total{job="j", shown="bearer"}': "0+4x60"},
    ),
    "QuorateBrokerBehind": (
        {'quorate_broker_caught_up{job="j"}': "0x60"},
        {'quorate_broker_metadata_lag_records{job="j"}': "5000x19 10x60", 'quorate_broker_caught_up{job="j"}': "1x60"},
    ),
}  # fmt: skip


def rows(heading: str) -> dict[str, list[str]]:
    """Of the page's table: what stands in backquotes in the first column -> the other columns."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", text, flags=re.MULTILINE)
    assert len(dict(found)) == len(found), "a row is there twice"
    return {name: others.split(" | ") for name, others in found}


def named(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


class Told(NamedTuple):
    """Series, the seconds between two of their values and of them all, and the alerts that fire at some moment."""

    series: Mapping[str, str]
    every: float
    seconds: float
    fire: Collection[str]


def refute(place: Path, *told: Told, every: float = PLAYED_S) -> str:
    """Why promtool, which evaluates the rules so often, holds that not exactly these alerts fire; empty: they do."""
    assert PROMTOOL is not None
    (place / RULES).write_bytes(content(RULES))
    tests = [
        {
            "interval": in_ms(one.every),
            "input_series": [{"series": name, "values": values} for name, values in one.series.items()],
            "promql_expr_test": [
                {
                    "expr": 'max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[10h]))',
                    "eval_time": in_ms(one.seconds),
                    "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in one.fire],
                }
            ],
        }
        for one in told
    ]
    # JSON is YAML.
    document = {"rule_files": [RULES], "evaluation_interval": in_ms(every), "tests": tests}
    (place / "test.yml").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [PROMTOOL, "test", "rules", "test.yml"], cwd=place, capture_output=True, text=True, check=False, timeout=60
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def in_ms(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def drilled(name: str, fire: Collection[str], every: float) -> Told:
    """A drill with so many seconds between two scrapes."""
    found = kept_of(name)
    return Told(found["series"], every, (found["scrapes"] - 1) * every, fire)


@with_promtool
def test_drills_fire_exactly_the_rules_that_the_page_says(tmp_path: Path) -> None:
    said = {drill: named(cell) for drill, (cell, _) in rows("What drills fire").items()}
    slowed = [drilled(drill, fire, PLAYED_S) for drill, fire in said.items() if drill not in ON_PURPOSE]
    assert refute(tmp_path, *slowed) == ""
    # And a wrong word of the page is found.
    assert "QuorateElections" in refute(tmp_path, drilled("steady", ["QuorateElections"], PLAYED_S))


@with_promtool
def test_what_is_done_on_purpose_fires_nothing_at_its_own_pace_and_slowed_down_what_its_restarts_do(
    tmp_path: Path,
) -> None:
    said = {drill: named(cell) for drill, (cell, _) in rows("What drills fire").items() if drill in ON_PURPOSE}
    assert not any(said.values())
    assert refute(tmp_path, *(drilled(drill, fire, EVERY_S) for drill, fire in said.items()), every=EVERY_S) == ""
    # If each of its steps took thirty times as long.
    for drill in said:
        told = refute(tmp_path, drilled(drill, ["Nothing"], PLAYED_S))
        assert set(re.findall(r'alertname="(\w+)"', told)) - {"Nothing"} <= OF_A_RESTART, drill


def test_page_says_of_every_drill_what_it_fires_and_of_each_rule_where_it_was_seen_to_fire() -> None:
    by_drill, by_rule = rows("What drills fire"), rows("The rules")
    assert list(by_drill) == list(DRILLS)
    assert kept() == set(DRILLS)
    assert set(DRILLS) >= ON_PURPOSE
    assert list(by_rule) == RULE_NAMES == list(MADE_UP)
    for drill, (cell, pace) in by_drill.items():
        names = named(cell)
        assert set(names) <= set(RULE_NAMES), drill
        assert cell == (", ".join(f"`{name}`" for name in names) or "nothing"), drill
        assert pace == ("its own" if drill in ON_PURPOSE else "slowed down"), drill
    seen = {name for cell, _ in by_drill.values() for name in named(cell)}
    assert {name: row[-1] for name, row in by_rule.items()} == {
        name: "a drill" if name in seen else "made-up series only" for name in RULE_NAMES
    }
    assert list(rows("What no drill fires")) == [name for name in RULE_NAMES if name not in seen]


@with_promtool
def test_rules_fire_over_their_limits_and_not_below_them(tmp_path: Path) -> None:
    above = [Told(series, PLAYED_S, 900, [rule]) for rule, (series, _) in MADE_UP.items()]
    below = [Told(series, PLAYED_S, 900, []) for _, series in MADE_UP.values()]
    assert refute(tmp_path, *above, *below) == ""
    said = refute(tmp_path, *(one._replace(fire=[]) for one in above))
    assert [rule for rule in MADE_UP if f'alertname="{rule}"' not in said] == []


@with_promtool
def test_five_elections_are_not_more_than_five_where_prometheus_extends_what_it_saw(tmp_path: Path) -> None:
    # Scrapes do not fall on the begin and the end of the 15 minutes: these hold 880 s of values.
    series = {'quorate_raft_elections_won_total{job="j"}': "1x20 2 3 4 5 6x40"}
    assert refute(tmp_path, Told(series, 16, 1000, [])) == ""
    sixth = {name: f"{values} 7x10" for name, values in series.items()}
    assert refute(tmp_path, Told(sixth, 16, 1100, ["QuorateElections"])) == ""


@with_promtool
def test_prometheus_takes_rules_scrape_config_and_all_queries_of_the_dashboard(tmp_path: Path) -> None:
    asked = list(queries(json.loads(content(DASHBOARD))))
    recorded = [{"record": f"query:{place}", "expr": expression} for place, expression in enumerate(asked)]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": recorded}]}))
    for name in (RULES, SCRAPE):
        (tmp_path / name).write_bytes(content(name))
    for arguments in (["rules", RULES], ["rules", "queries.yml"], ["config", "--syntax-only", SCRAPE]):
        done = subprocess.run(
            [str(PROMTOOL), "check", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
