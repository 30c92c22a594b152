"""The same code has the same verdict: which examples and which order are drawn does not depend on who ran before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

DRAWING_TEST = """
import json, os
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st

if "MORE_MODULES" in os.environ:
    import many_constants

drawn = []

@settings(max_examples=60)
@given(st.integers(), st.text(), st.sets(st.text()))
def test_first(number, text, texts):
    drawn.append([number, text, sorted(texts)])

@pytest.mark.parametrize("number", range(12))
def test_in_order(number):
    drawn.append(number)

@pytest.fixture(scope="module", autouse=True)
def _written():
    yield
    Path(os.environ["DRAWN"]).write_text(json.dumps(drawn))
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A module of tests that draw, and one with many constants that it may load."""
    (tmp_path / "test_drawing.py").write_text(DRAWING_TEST)
    (tmp_path / "many_constants.py").write_text(f"NUMBERS = {[7_000_000_000 + n * 12_345 for n in range(300)]}\n")
    return tmp_path


def drawn(directory: Path, *options: str, **variables: str) -> list[object]:
    """What the tests in the directory drew, in their order."""
    written = directory / "drawn.json"
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "-q"]
    command = [sys.executable, "-m", "pytest", *plugins, *options, str(directory / "test_drawing.py")]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{directory}", "DRAWN": str(written)} | variables
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[object] = json.loads(written.read_text())
    return found


def test_fixed_examples_and_order_are_the_same_whatever_is_loaded(directory: Path) -> None:
    """Nor on the hashes of a process, nor on what another run kept."""
    first = drawn(directory, PYTHONHASHSEED="1")

    assert drawn(directory, MORE_MODULES="1", PYTHONHASHSEED="4711") == first


def test_explored_examples_and_order_follow_from_their_seed(directory: Path) -> None:
    def explored(seed: int) -> list[object]:
        options = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}", f"--randomly-seed={seed}"]
        return drawn(directory, *options)

    first = explored(1)

    assert explored(1) == first
    assert explored(2) != first
