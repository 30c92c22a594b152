"""Drills as an operator runs them: real clusters, verdicts with exit codes, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.cluster.making import Ports, controller_directory, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.snapshots.checkpoints.loading import load_image
from tests.integration.commands import Ended, end_of


async def drill(directory: Path, *arguments: str) -> Ended:
    """`quorate drill run`, with its own directory for temporary files, which must be empty afterwards."""
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.scripts.cli", "drill", "run", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    ended = await end_of(process)
    assert list(temporary.iterdir()) == [], ended
    for line in ended.out.splitlines() if "--json" in arguments else ():
        require_writes_throughout(json.loads(line))
    return ended


def require_writes_throughout(outcome: dict[str, Any]) -> None:
    """By its own times writes began a second before its fault, and lasted until all was well again."""
    (fault, *_) = (event["at_s"] for event in outcome["events"] if event["kind"] == "fault")
    (well_again,) = (event["at_s"] for event in outcome["events"] if event["text"].startswith("healthy again"))
    written = outcome["acknowledged_s"]
    assert written[0] <= fault - 1.0
    assert written[-1] >= well_again
    since = [fault, *(at for at in written if at >= fault)]
    values = {one["expectation"]["name"]: one["value"] for one in outcome["measured"]}
    longest_s = max(later - earlier for earlier, later in pairwise(since))
    assert values["outage_ms"] == pytest.approx(1_000 * longest_s, abs=5)
    assert values["unwritten_ms"] == 0


async def test_drill_that_expects_too_much_fails_and_says_why(tmp_path: Path) -> None:
    """On a cluster that is there already; it is whole afterwards, and the report has what happened."""
    cluster = tmp_path / "var"
    make_fresh(cluster, Ports.of(free_ports(9)), 3, 3, is_secured=True)
    reports = tmp_path / "reports"

    ended = await drill(
        tmp_path, "leader-kill", "--on", str(cluster), "--expect", "outage_ms=0", "--report", str(reports), "--json"
    )

    assert ended.code == 1, ended
    outcome = json.loads(ended.out)
    assert outcome["verdict"] == "failed", outcome
    assert outcome["reason"].startswith("longest wait of a write, ms: ")
    values = {one["expectation"]["name"]: one["value"] for one in outcome["measured"]}
    assert (values["lost_writes"], values["nodes_that_differ"]) == (0, 0)
    (report,) = reports.iterdir()
    assert (outcome.pop("schema_version"), outcome.pop("as_of")) == (1, None), "of a command's answer, and no state"
    assert json.loads((report / "leader-kill.json").read_text()) == outcome
    assert "kill -9 controller-" in (report / "report.html").read_text()
    assert list((report / "leader-kill-logs").glob("controller-*.log"))


async def test_full_disk_ends_its_controller_and_costs_nothing(tmp_path: Path) -> None:
    """One of the drills whose machine fails."""
    ended = await drill(tmp_path, "full-disk", "--json")

    assert ended.code == 0, ended
    assert "ended with exit code 70" in ended.out
    assert json.loads(ended.out)["verdict"] == "passed"


async def test_secret_is_exchanged_under_writes_and_nobody_notices(tmp_path: Path) -> None:
    # How soon this machine takes what is offered, while it runs other tests, is not the question.
    ended = await drill(tmp_path, "rotate-secret", "--expect", "writes_short_per_s=500", "--json")

    outcome = json.loads(ended.out)
    assert (ended.code, outcome["reason"]) == (0, ""), outcome
    values = {one["expectation"]["name"]: one["value"] for one in outcome["measured"]}
    names = ("refused_writes", "unacknowledged_writes", "lost_writes", "elections", "old_ones_let_in")
    assert [values[name] for name in names] == [0] * 5
    assert outcome["noted"]["offered_writes"] >= 2_500, "500 a second for five seconds"


async def test_controller_with_the_directory_of_another_does_not_start(tmp_path: Path) -> None:
    """On a cluster that does not run: its own directory is back at the end, and the drill's topics are gone."""
    cluster = tmp_path / "var"
    plan = make_fresh(cluster, Ports.of(free_ports(9)), 3, 3)

    before = {path: path.read_bytes() for path in cluster.rglob("*") if path.is_file()}
    unsaid = await drill(tmp_path, "foreign-directory", "--on", str(cluster))
    assert unsaid.code == 1
    assert "say --destroy" in unsaid.err
    assert {path: path.read_bytes() for path in before} == before
    ended = await drill(tmp_path, "foreign-directory", "--on", str(cluster), "--destroy", "--json")

    assert ended.code == 0, ended
    assert "belongs to node" in ended.out
    assert "belongs to cluster" in ended.out
    for controller in plan.controllers:
        directory = controller_directory(cluster, controller)
        assert set(load_image(directory).topics.by_name) == set()
        assert not directory.with_name(f"{directory.name}.own").exists()
