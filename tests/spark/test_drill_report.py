"""Outcomes of drills as they are stored, gathered by Spark and compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quorate.pipeline.drills.report import lines, page
from quorate.pipeline.jobs.drill_report import NoOutcome, gather
from quorate.scripts.drills.drill import outage
from quorate.scripts.drills.outcome import DrillMeasurement, DrillOutcome


def store(directory: Path, number: int, outage_ms: float | None, drill: str = "leader-kill") -> None:
    """One run, as `quorate drill run --report` keeps it."""
    outcome = DrillOutcome(
        drill=drill,
        hypothesis="another takes over",
        verdict="passed" if outage_ms is not None else "broken",
        begun_at_ms=1_800_000_000_000 + number,
        seconds=10,
        cluster_id="c",
        controllers=3,
        brokers=3,
        measured=(DrillMeasurement(expectation=outage(100), value=outage_ms),),
        noted={"digest": "00"},
        events=(),
        acknowledged_s=(),
    )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{drill}.json").write_text(outcome.model_dump_json(indent=1))


def test_runs_are_compared_with_those_before(spark: SparkSession, tmp_path: Path) -> None:
    for number, outage_ms in enumerate((40.0, 50.0, 60.0, None, 90.0)):
        store(tmp_path / "reports" / str(number), number, outage_ms)
    store(tmp_path / "reports" / "0", 0, 10.0, "cold-boot")

    found = gather(spark, [tmp_path / "reports"])

    boot, kill = found
    assert (boot.drill, boot.change) == ("cold-boot", None)
    assert kill.as_json() == {
        "drill": "leader-kill",
        "name": "outage_ms",
        "meaning": "longest wait of a write, ms",
        "at_most": 100.0,
        "runs": 5,
        "passed": 4,
        "median": 55.0,
        "worst": 90.0,
        "last": 90.0,
        "change": 1.8,
    }
    assert lines(found)[-2:] == [
        "leader-kill: 4 of 5 runs passed",
        "  longest wait of a write, ms: last 90, median 55, worst 90, at most 100: 1.8 times the usual",
    ]
    assert "Drills over time" in page(found).render()
    (tmp_path / "reports" / "1" / "other.json").write_text('{"drill": "leader-kill"}')
    with pytest.raises(NoOutcome, match=r"other\.json: no outcome of a drill; take it away"):
        gather(spark, [tmp_path / "reports"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoOutcome, match="holds no outcome"):
        gather(spark, [tmp_path / "empty"])
