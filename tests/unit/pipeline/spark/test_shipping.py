"""The archive of our packages for workers elsewhere."""

import subprocess
import sys
from pathlib import Path

from quorate.pipeline.spark.shipping import write_packages


def test_archive_is_all_that_a_worker_needs_to_import(tmp_path: Path) -> None:
    """A worker elsewhere has the third-party packages, and nothing of ours."""
    archive = write_packages(tmp_path / "quorate.zip")
    modules = "quorate.metadata_log.batches.columns, quorate.pipeline.errors, quorate.snapshots.digest"
    program = f"import sys, {modules}; print(quorate.pipeline.errors.__file__)"

    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = [{str(archive)!r}, *{sys.path!r}]; {program}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{archive}/quorate/pipeline/errors.py\n"


def test_archive_of_the_same_packages_is_the_same_bytes(tmp_path: Path) -> None:
    first, second = write_packages(tmp_path / "1.zip"), write_packages(tmp_path / "2.zip")

    assert first.read_bytes() == second.read_bytes()
