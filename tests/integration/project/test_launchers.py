"""The launchers in scripts/: what they start, from where, and what they say when they cannot.

The environment itself is a stand-in here, a `.venv/bin/python` that tells how it was called: making a real one takes
half a minute and a package index.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

MODULE_OF_EXPLORE = "quorate.scripts.exploration"

TELLING_PYTHON = """#!/bin/sh
echo "cwd=$PWD"
echo "safe_path=$PYTHONSAFEPATH"
for argument in "$@"; do echo "argument=$argument"; done
exit 7
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the launchers and a finished environment, at a path with a space in it."""
    root = tmp_path / "a checkout"
    (root / "scripts").mkdir(parents=True)
    for name in (
        "bench",
        "bench-pipeline",
        "conformance",
        "environment.py",
        "environment.sh",
        "generate-history",
        "netsim",
        "quorate",
        "replay-digests",
        "simulate",
        "spark-cluster",
        "test",
        "up",
    ):
        shutil.copy(ROOT / "scripts" / name, root / "scripts")
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, root)
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(TELLING_PYTHON)
    python.chmod(0o755)
    made_from = [f"{root}\n".encode(), (root / "pyproject.toml").read_bytes(), (root / "uv.lock").read_bytes()]
    (root / ".venv" / "made-from").write_bytes(b"".join(made_from))
    return root


@pytest.fixture
def tools_without_python(tmp_path: Path) -> Path:
    """A directory for PATH with what the launchers call, and no Python."""
    directory = tmp_path / "tools"
    directory.mkdir()
    for name in ("bash", "cat", "cmp", "dirname", "readlink"):
        found = shutil.which(name)
        assert found is not None
        (directory / name).symlink_to(found)
    return directory


def launch(launcher: Path, *arguments: str, cwd: Path, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launcher, *arguments], cwd=cwd, env={"PATH": path}, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("launcher", "module"),
    [
        ("quorate", ["quorate.scripts.cli"]),
        ("up", ["quorate.scripts.cli", "up"]),
        ("simulate", ["quorate.scripts.simulation"]),
        ("netsim", ["quorate.scripts.networks"]),
        ("bench", ["quorate.scripts.benchmarks"]),
        ("conformance", ["quorate.scripts.conformance_runner"]),
        ("generate-history", ["quorate.scripts.generated_history.generate"]),
        ("replay-digests", ["quorate.scripts.generated_history.digests"]),
    ],
)
def test_launcher_from_another_directory_starts_its_module_there(
    checkout: Path, tmp_path: Path, launcher: str, module: list[str]
) -> None:
    """An operator gives a path relative to where they stand: it must reach the command as it was given."""
    done = launch(checkout / "scripts" / launcher, "a b", "--from=../x", cwd=tmp_path)

    arguments = "".join(f"argument={argument}\n" for argument in ["-m", *module, "a b", "--from=../x"])
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == f"cwd={tmp_path}\nsafe_path=1\n{arguments}"


def test_launcher_behind_a_symlink_finds_its_checkout(checkout: Path, tmp_path: Path) -> None:
    """A link in a directory of PATH is a common way to install a command."""
    (tmp_path / "quorate").symlink_to(checkout / "scripts" / "quorate")

    done = launch(tmp_path / "quorate", "status", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("file", ["uv.lock", "pyproject.toml", ".venv/made-from", ".venv/bin/python"])
def test_launcher_with_a_stale_environment_and_no_python_says_what_it_needs(
    checkout: Path, tools_without_python: Path, file: str
) -> None:
    """Whatever of it changed or went away, the environment is not used as it is."""
    if file.startswith(".venv"):
        (checkout / file).unlink()
    else:
        (checkout / file).write_text("changed")

    done = launch(checkout / "scripts" / "quorate", "status", cwd=checkout, path=str(tools_without_python))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "quorate: needs Python 3.11 or newer with its venv module (Debian, Ubuntu: apt install python3-venv),"
        " and found none on PATH.\n"
    )


def test_launcher_where_python_is_too_old_or_broken_takes_the_next(
    checkout: Path, tools_without_python: Path, tmp_path: Path
) -> None:
    """A version manager leaves names on PATH that fail when they are run; an old python3 is still common."""
    (checkout / ".venv" / "made-from").unlink()
    for name, body in {"python3": "exit 1", "python3.13": "exit 127", "python3.12": 'echo "$@"; exit 0'}.items():
        (tools_without_python / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools_without_python / name).chmod(0o755)

    done = launch(checkout / "scripts" / "quorate", cwd=tmp_path, path=str(tools_without_python))

    assert f"-I {checkout}/scripts/environment.py" in done.stdout


def test_test_launcher_help_needs_no_environment(checkout: Path) -> None:
    """Asking what a command does must not install anything."""
    shutil.rmtree(checkout / ".venv")

    done = launch(checkout / "scripts" / "test", "--help", cwd=checkout)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: scripts/test")
    assert not (checkout / ".venv").exists()


@pytest.fixture
def passing_checkout(checkout: Path) -> Path:
    """The checkout with checks that pass at once, and what the pipeline needs."""
    shutil.copy(checkout / ".venv" / "made-from", checkout / ".venv" / "pipeline-made-from")
    for name in ("ruff", "mypy", "lint-imports"):
        (checkout / ".venv" / "bin" / name).write_text("#!/bin/sh\nexit 0\n")
        (checkout / ".venv" / "bin" / name).chmod(0o755)
    return checkout


def test_test_launcher_explores_with_the_arguments_as_they_were_given(passing_checkout: Path, tmp_path: Path) -> None:
    done = launch(passing_checkout / "scripts" / "test", "--explore", "--seed", "5", "tests/unit", cwd=tmp_path)

    arguments = "".join(f"argument={one}\n" for one in ("-m", MODULE_OF_EXPLORE, "--seed", "5", "tests/unit"))
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == f"cwd={passing_checkout}\nsafe_path=1\n{arguments}"


@pytest.mark.parametrize("options", [[], ["--quick"], ["--quick", "-k", "vote"]])
def test_test_launcher_hands_pytest_what_the_mode_tries(passing_checkout: Path, options: list[str]) -> None:
    done = launch(passing_checkout / "scripts" / "test", *options, cwd=passing_checkout)

    arguments = [line.removeprefix("argument=") for line in done.stdout.splitlines() if line.startswith("argument=")]
    assert arguments[:6] == ["-m", "pytest", "-n", "auto", "--dist", "loadgroup"]
    tried = [one.partition("::")[0] for one in arguments[6:] if one.startswith("tests/")]
    assert [one for one in tried if not (ROOT / one).exists()] == []
    assert ("tests/unit" in tried, "tests/integration" in tried) == ("--quick" in options, False)
    assert ("--quick leaves out: tests/integration" in done.stdout) == ("--quick" in options)
    assert arguments[-2:] == options[1:] or not options[1:]


@pytest.fixture
def telling_base_python(tools_without_python: Path) -> Path:
    """A directory for PATH whose Python, instead of making the environment, tells what it was asked to make."""
    python = tools_without_python / "python3"
    python.write_text('#!/bin/sh\ncase $2 in -c) exit 0 ;; esac\necho made: "$@"\nexit 9\n')
    python.chmod(0o755)
    return tools_without_python


@pytest.mark.parametrize("command", [["quorate", "pipeline", "audit", "a dir"], ["test"]])
def test_launcher_of_what_needs_spark_brings_it_in_where_it_is_missing(
    checkout: Path, telling_base_python: Path, command: list[str]
) -> None:
    done = launch(checkout / "scripts" / command[0], *command[1:], cwd=checkout, path=str(telling_base_python))

    assert (done.returncode, done.stdout) == (9, f"made: -I {checkout}/scripts/environment.py --pipeline\n")


@pytest.mark.parametrize(
    "command",
    [
        ["up"],
        ["quorate", "status"],
        ["quorate", "topics", "create", "pipeline"],
        ["quorate", "pipeline"],
        ["quorate", "pipeline", "--help"],
        ["quorate", "pipeline", "audit", "--help"],
        ["bench-pipeline", "--help"],
        ["spark-cluster", "start", "--help"],
        ["test", "--explore", "--help"],
    ],
)
def test_launcher_of_what_needs_no_spark_leaves_it_out(
    checkout: Path, telling_base_python: Path, command: list[str]
) -> None:
    """A cluster, and a text of help, must not wait for a download of half a gigabyte."""
    done = launch(checkout / "scripts" / command[0], *command[1:], cwd=checkout, path=str(telling_base_python))

    assert (done.returncode, done.stderr) == (7, "")


def test_launcher_with_spark_there_already_brings_nothing_in(checkout: Path, telling_base_python: Path) -> None:
    shutil.copy(checkout / ".venv" / "made-from", checkout / ".venv" / "pipeline-made-from")

    done = launch(checkout / "scripts" / "quorate", "pipeline", "audit", cwd=checkout, path=str(telling_base_python))

    assert (done.returncode, done.stderr) == (7, "")


def test_launcher_after_a_change_of_the_lock_makes_both_anew(checkout: Path, telling_base_python: Path) -> None:
    shutil.copy(checkout / ".venv" / "made-from", checkout / ".venv" / "pipeline-made-from")
    (checkout / "uv.lock").write_text("changed")

    done = launch(checkout / "scripts" / "quorate", "pipeline", "audit", cwd=checkout, path=str(telling_base_python))

    assert done.stdout == f"made: -I {checkout}/scripts/environment.py --pipeline\n"


RECORDING = """#!/bin/sh
echo "$(basename "$0") $*" >> "$RECORD"
[ "$1" != export ] || echo "a-package==1 --hash=sha256:00"
"""


def test_what_is_fetched_is_compared_with_the_digests_of_the_lock(checkout: Path, tmp_path: Path) -> None:
    """The installer itself too: an index that gives out something else is refused by it."""
    bin_directory, record = checkout / ".venv" / "bin", tmp_path / "record"
    (checkout / ".venv" / "made-from").write_text(f"{checkout}\nan older lock")
    for name in ("python", "uv"):
        (bin_directory / name).write_text(RECORDING)
        (bin_directory / name).chmod(0o755)
    making = (sys.executable, "-I", checkout / "scripts" / "environment.py")
    for options in ([], ["--pipeline"]):
        done = subprocess.run(
            [*making, *options], env={"PATH": "/usr/bin:/bin", "RECORD": str(record)}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr

    calls = [line.split() for line in record.read_text().splitlines()]
    fetching = [call for call in calls if {"install", "sync"} & set(call) and "--editable" not in call]
    assert [call[0] for call in fetching] == ["python", "uv", "uv"]
    assert all("--require-hashes" in call for call in fetching), fetching
    (wanted,) = (checkout / ".venv" / "uv-pin.txt").read_text().splitlines()
    assert re.fullmatch(r"uv==[0-9.]+( --hash=sha256:[0-9a-f]{64})+", wanted)
