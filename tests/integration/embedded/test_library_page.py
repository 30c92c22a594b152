"""The tests of docs/library.md pass, and its programs can fail (tests/integration/project/test_wheel.py runs them)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "library.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
WAIT_S = 60


def run(directory: Path, *arguments: str) -> None:
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tests_of_the_page_pass_in_a_project_that_has_no_settings_for_them(tmp_path: Path) -> None:
    tests = [text for text in PROGRAMS if "def test_" in text]
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")

    run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path))


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("controllers=3", "controllers=2", "InvalidCluster"),
        ("cluster.running == {0, 1, 2}", "cluster.running == {0, 1}", "AssertionError"),
        ("is not before.configs, timeout_ms=10_000", "is None, timeout_ms=100", "WatchTimeout"),
        ("ErrorCode.INVALID_REPLICATION_FACTOR", "ErrorCode.NONE", "AssertionError"),
        ("after.partitions.offline == 1", "after.partitions.offline == 0", "AssertionError"),
        ('operation="CREATE"', 'operation="DESCRIBE"', "User:CN=ana needs CREATE"),
    ],
)
def test_damaged_program_of_the_page_is_found(right: str, wrong: str, why: str, tmp_path: Path) -> None:
    (program,) = (text for text in PROGRAMS if right in text)
    (tmp_path / "program.py").write_text(program.replace(right, wrong), encoding="utf-8")
    with pytest.raises(AssertionError, match=why):
        run(tmp_path, str(tmp_path / "program.py"))
