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

from quorate.scripts.watching.files import DASHBOARD, RULES, SCRAPE, content
from tests.alerts.captures import CAPTURED, DIRECTORY, PLAYED_S
from tests.architecture.source_tree import ROOT
from tests.unit.scripts.watching.test_expressions import queries, rules

PAGE = ROOT / "docs" / "watching.md"
RULE_NAMES = [str(rule["alert"]) for rule in rules()]
PROMTOOL = shutil.which("promtool")
with_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed: it evaluates the rules")

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
        {'quorate_raft_elections_won_total{job="j"}': "0x20 1 2 3 4 5x20"},
        {'quorate_raft_elections_won_total{job="j"}': "0x20 1 2 3x40"},
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


def table(heading: str) -> dict[str, list[str]]:
    """Of the page: what stands in backquotes in the first column -> in the second."""
    rows = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {
        matched[1]: re.findall(r"`(\w+)`", matched[2])
        for matched in re.finditer(r"^\| `([\w-]+)` \| ([^|]*) \|", rows, flags=re.MULTILINE)
    }


class Told(NamedTuple):
    """Series, how long they go on, and the alerts that fire at some moment of it."""

    series: Mapping[str, str]
    minutes: int
    fire: Collection[str]


def refute(place: Path, *told: Told) -> str:
    """Why promtool holds that not exactly these alerts fire; empty: they do."""
    assert PROMTOOL is not None
    (place / RULES).write_bytes(content(RULES))
    every = f"{PLAYED_S}s"
    tests = [
        {
            "interval": every,
            "input_series": [{"series": name, "values": values} for name, values in one.series.items()],
            "promql_expr_test": [
                {
                    "expr": 'max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[10h]))',
                    "eval_time": f"{one.minutes}m",
                    "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in one.fire],
                }
            ],
        }
        for one in told
    ]
    # JSON is YAML.
    document = {"rule_files": [RULES], "evaluation_interval": every, "tests": tests}
    (place / "test.yml").write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [PROMTOOL, "test", "rules", "test.yml"], cwd=place, capture_output=True, text=True, check=False, timeout=60
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def drilled(name: str) -> tuple[dict[str, str], int]:
    """Series of a drill, and their minutes."""
    kept = json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    return kept["series"], kept["scrapes"] * PLAYED_S // 60


@with_promtool
def test_drills_fire_exactly_the_rules_that_the_page_says(tmp_path: Path) -> None:
    said = table("What drills fire")
    assert refute(tmp_path, *(Told(*drilled(drill), said[drill]) for drill in CAPTURED)) == ""
    # And a wrong word of the page is found.
    assert "QuorateElections" in refute(tmp_path, Told(*drilled("steady"), ["QuorateElections"]))


def test_page_has_all_drills_that_were_kept_and_each_rule_says_where_it_was_seen_to_fire() -> None:
    by_drill, by_rule = table("What drills fire"), table("The rules")
    assert list(by_drill) == list(CAPTURED) == [path for path in CAPTURED if (DIRECTORY / f"{path}.json").exists()]
    assert sorted(path.stem for path in DIRECTORY.glob("*.json")) == sorted(CAPTURED)
    assert list(by_rule) == RULE_NAMES == list(MADE_UP)
    seen = {name for names in by_drill.values() for name in names}
    text = PAGE.read_text(encoding="utf-8")
    for name in RULE_NAMES:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.endswith("| a drill |" if name in seen else "| made-up series only |"), name


@with_promtool
def test_rules_fire_over_their_limits_and_not_below_them(tmp_path: Path) -> None:
    above = [Told(series, 15, [rule]) for rule, (series, _) in MADE_UP.items()]
    below = [Told(series, 15, []) for _, series in MADE_UP.values()]
    assert refute(tmp_path, *above, *below) == ""
    said = refute(tmp_path, *(one._replace(fire=[]) for one in above))
    assert [rule for rule in MADE_UP if f'alertname="{rule}"' not in said] == []


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
