"""What scripts/test --explore finds is on disk with the line that keeps it, and that line holds on every run."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.scripts.exploration.findings import heading, written
from quorate.scripts.exploration.seeds import KINDS, SimulationKind, try_seeds
from quorate.scripts.simulation.quorum.patches import patched
from quorate.scripts.simulation.system.mutations import MUTATIONS
from tests.guards.findings import example_line
from tests.waiting import eventually_sync

ROOT = Path(__file__).resolve().parents[3]

PROPERTIES = """
from hypothesis import example, given, strategies as st

{above}
@given(st.integers(), st.text())
def test_small(number, text):
    assert number < 70_000

@given(st.data())
def test_drawn_within(data):
    assert data.draw(st.integers()) < 70_000
"""


def properties_in(directory: Path, above: str = "") -> Path:
    path = directory / "test_properties.py"
    path.write_text(PROPERTIES.format(above=above))
    return path


def environment() -> dict[str, str]:
    plugins = f"-p tests.conftest -p no:cacheprovider -c {ROOT / 'pyproject.toml'}"
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": plugins, "PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], env=environment(), capture_output=True, text=True, check=False, timeout=280
    )


def explore(tests: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return run("quorate.scripts.exploration", "--out", str(out), *more, str(tests))


def test_example_on_which_a_property_fails_is_kept_by_the_line_that_is_printed(tmp_path: Path) -> None:
    """Seen failing by its seed, the same again, and by every run of the tests once the line stands there."""
    tests = properties_in(tmp_path)

    done = explore(tests, tmp_path / "out", "--seed", "5")

    assert done.returncode == 1, done.stdout
    files = {path.stem.rpartition("test_")[2]: path.read_text() for path in (tmp_path / "out").glob("*-seed-5/*.txt")}
    assert set(files) == {"small", "drawn_within"}
    keep = re.search(r"^keep:  (@example\(number=-?\d+, text='.*'\)) above ", files["small"], re.MULTILINE)
    assert keep is not None, files["small"]
    assert keep[1] in done.stdout
    assert re.search(r"^keep:  .*for now @reproduce_failure\(.*\) above ", files["drawn_within"], re.MULTILINE)
    again = re.search(r"^again: scripts/test (.*) '(.*::test_small)'$", files["small"], re.MULTILINE)
    assert again is not None, files["small"]
    assert run("pytest", "-q", "-n", "0", *again[1].split(), again[2]).returncode == 1
    fixed = run("pytest", "-q", "-n", "0", "-k", "small", str(properties_in(tmp_path, above=keep[1])))
    assert fixed.returncode == 1
    assert "Failing explicit" in fixed.stdout, fixed.stdout


def test_nothing_found_in_the_time_is_a_success_and_leaves_nothing(tmp_path: Path) -> None:
    tests = tmp_path / "test_sound.py"
    tests.write_text("from hypothesis import given, strategies as st\n@given(st.integers())\ndef test_it(n): pass\n")

    done = explore(tests, tmp_path / "out", "--seed", "4711", "--minutes", "0.1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("\n== round 1, which scripts/test --explore --seed 4711 begins with: properties\n")
    assert re.search(r"^== rounds from seed 4711: \d+, findings: 0$", done.stdout, re.MULTILINE)
    assert not (tmp_path / "out").exists()


WAITING = """
import os, threading
from pathlib import Path
from hypothesis import given, strategies as st

@given(st.none())
def test_waits(_):
    with open({path!r}, "w") as file:
        file.write(str(os.getpid()))
    threading.Event().wait()
"""


def test_ctrl_c_ends_it_and_all_that_it_started(tmp_path: Path) -> None:
    tests, told = tmp_path / "test_waiting.py", tmp_path / "worker"
    tests.write_text(WAITING.format(path=str(told)))
    command = [sys.executable, "-m", "quorate.scripts.exploration", "--out", str(tmp_path / "out"), str(tests)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as exploration:
        worker = int(eventually_sync(lambda: told.is_file() and told.read_text(), "a test runs", 60.0))
        exploration.send_signal(signal.SIGINT)
        said, _ = exploration.communicate(timeout=120)

    assert exploration.returncode == 130
    assert said.splitlines()[-1] == "== ended by Ctrl-C in round 1"
    eventually_sync(lambda: not Path(f"/proc/{worker}").exists(), "the worker is gone")


def test_seed_that_breaks_a_promise_is_a_finding_with_the_list_that_keeps_it(tmp_path: Path) -> None:
    _, system = KINDS
    with patched(MUTATIONS["reply-after-commit"]()):
        tried = try_seeds(replace(system, count=1), 7, tmp_path, 1, math.inf)

    (path,) = written(tmp_path)
    again, keep = heading(path).splitlines()
    assert tried == 1
    assert again == "again: scripts/simulate --system --seeds 1 --seed 8000"
    assert keep.startswith("keep:  add 8000 to FIXED_SEEDS in tests/simulation/test_system.py;")
    assert "was answered before offset" in path.read_text()
    assert [story.name for story in (tmp_path / "stories").iterdir()] == ["system-seed-8000.txt"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_list_that_takes_up_seeds_is_there(kind: SimulationKind) -> None:
    assert "\nFIXED_SEEDS: Final = (" in (ROOT / kind.test).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("note", "line"),
    [
        ("Failing test case: test_a(\n    n=5,  # or any other\n    t='x\\n',\n)", "@example(n=5, t='x\\n')"),
        ("Falsifying example: test_a(n=[1, -2], tmp_path=PosixPath('/'))", "@example(n=[1, -2])"),
        ("Failing test case: test_a(\n    n=data(...),\n)", None),
        ("Failing test case: test_a(n=<a.B object at 0x7f>)", None),
        ("Explanation:\n    these lines", None),
    ],
)
def test_line_has_what_hypothesis_gives_and_nothing_that_is_no_python(note: str, line: str | None) -> None:
    assert example_line(note, {"n", "t"}) == line
