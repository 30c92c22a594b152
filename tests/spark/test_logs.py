"""Data frames in one's own program: the script of the documents in a bare session, and what is refused."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quorate.metadata_log.errors import StorageError
from quorate.pipeline import Logs
from quorate.pipeline.errors import BadSetting, PipelineError
from quorate.pipeline.incidents.telling.incident_table import INCIDENTS
from quorate.pipeline.source.registering import register
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.pipeline_logs import KAFKA, KAFKA_LOG
from tests.spark.processes import QUICK_JAVA

ROOT = Path(__file__).parents[2]
MILLISECONDS = 1000


def documented_script() -> str:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(from pyspark\.sql import SparkSession\n.*?)```", text, flags=re.DOTALL)
    return str(script)


def test_documented_script_runs_in_a_bare_session(tmp_path: Path) -> None:
    """Nothing is set: no interpreter for the workers, no option of Spark."""
    script = tmp_path / "script.py"
    script.write_text(documented_script(), encoding="utf-8")
    variables = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "JDK_JAVA_OPTIONS": " ".join(QUICK_JAVA)}

    done = subprocess.run(
        [sys.executable, script], cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=600
    )

    assert done.returncode == 0, done.stderr
    image = load_image(KAFKA_LOG, 9500)
    assert f"{len(image.partitions)} partitions at offset 9500, digest {digest_image(image).text}\n" in done.stdout
    assert "782 times a partition had no leader" in done.stdout
    assert done.stdout.count("|critical|") == 4
    assert not list(tmp_path.glob("quorate-logs-*"))


def test_what_is_asked_for_twice_is_made_once(spark: SparkSession, tmp_path: Path) -> None:
    with Logs(spark, KAFKA_LOG, scratch=tmp_path) as logs:
        first = logs.history()
        versions = first.partitions.count()
        assert logs.history() is first
        assert versions == 10_783

        state = logs.state(9500)
        assert logs.state(9500) is state
        at = datetime.fromtimestamp(load_image(KAFKA_LOG, 9500).provenance.log_time_ms / MILLISECONDS, UTC)
        assert logs.state(at.replace(tzinfo=None)).digest == logs.state(at).digest
        assert logs.incidents() is logs.incidents()
        assert logs.incidents().columns == INCIDENTS.names
        assert logs.records(columns="offset").where("offset < 10").count() == 10
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_what_has_no_answer_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="Logs needs a path"):
        Logs(spark, [])
    with Logs(spark, [KAFKA_LOG], mixed=True) as several, pytest.raises(BadSetting, match="have no one state"):
        several.state()
    small, nothing = KAFKA / "dynamic-small" / "m1" / "log", tmp_path / "nothing"
    with Logs(spark, [small, nothing], mixed=True) as several:
        several.history()
        assert several.failed.keys() == {str(nothing)}
        assert several.incidents().count()
    with Logs(spark, KAFKA_LOG) as logs, pytest.raises(PipelineError, match="ends at offset 10996, before 20000"):
        logs.state(20_000)
    with Logs(spark, nothing) as logs, pytest.raises(StorageError, match="no such file or directory"):
        logs.history()


def test_workers_without_the_packages_are_refused_in_a_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that somebody chose, with the standard library and PySpark only; and one that is not there."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(
        BadSetting, match=rf"workers, {bare}, (lacks|runs no task).*set PYSPARK_PYTHON before"
    ) as raised:
        register(spark)
    assert "\n" not in str(raised.value)

    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "nowhere"))
    with pytest.raises(BadSetting, match=r"nowhere, runs no task: .*set PYSPARK_PYTHON before"):
        register(spark)
