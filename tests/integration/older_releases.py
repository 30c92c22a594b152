"""Older releases out of the history of this tree: their wheels, installed beside the libraries of this environment.

None was published yet, so a commit stands for a release. Its wheel is built as any is and bears the version of its tree
with the commit behind it, which its processes say of themselves: nobody can take this tree's own for them.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.integration.wheels import UV, WAIT_S, built_wheel

ROOT: Final = Path(__file__).parents[2]
_COMMIT_LETTERS: Final = 8


class OlderRelease(NamedTuple):
    """An installed one."""

    python: Path
    #: As its processes say it.
    version: str


def commit_that_added(text: str, file: str) -> str:
    """The first commit of this history in whose ``file`` stands ``text``; skips the test where none can be found."""
    top = _git("rev-parse", "--show-toplevel", otherwise="the tree is no clone with a history of its own")
    if Path(top) != ROOT.resolve():
        pytest.skip("the tree is no clone with a history of its own: older releases cannot be taken from it")
    if _git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the clone is shallow: older releases are not in it")
    commits = _git("log", "--reverse", "--format=%H", f"-S{text}", "--", file).split()
    if not commits or commits[0] == _git("rev-parse", "HEAD"):
        pytest.skip(f"the history does not reach back to a release before {file} had {text}")
    return commits[0]


def installed_release(commit: str, directory: Path) -> OlderRelease:
    """The release of a commit, in an environment under ``directory``, which is empty."""
    commit = _git("rev-parse", "--verify", f"{commit}^{{commit}}", otherwise="the history does not reach back so far")
    source, environment = directory / "source", directory / "environment"
    source.mkdir()
    archive = directory / "source.tar"
    _git("archive", "--output", str(archive), commit)
    _run("tar", "--extract", "--file", str(archive), "--directory", str(source))
    version = _mark(source / "pyproject.toml", commit)
    wheel = built_wheel(source, directory / "wheel")
    base = sysconfig.get_path("purelib")
    _run(*UV, "venv", "--quiet", "--offline", "--no-project", "--python", UV[0], str(environment))
    python = environment / "bin" / "python"
    _run(*UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python), str(wheel))
    (site,) = environment.glob("lib/python*/site-packages")
    # Behind what is installed here, and without following the link that leads from there to this tree.
    (site / "libraries.pth").write_text(f"{base}\n", encoding="utf-8")
    return OlderRelease(python, version)


def _mark(project: Path, commit: str) -> str:
    """Put the commit behind the version of a tree; the version."""
    text = project.read_text(encoding="utf-8")
    marked, count = re.subn(
        r'(?m)^version = "([^"+]+)"$', rf'version = "\1+g{commit[:_COMMIT_LETTERS]}"', text, count=1
    )
    assert count == 1
    project.write_text(marked, encoding="utf-8")
    found = re.search(r'(?m)^version = "(.+)"$', marked)
    assert found is not None
    return found[1]


def _git(*arguments: str, otherwise: str | None = None) -> str:
    """What git says. ``otherwise``: skips the test, and why, where it does not do so."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False, timeout=WAIT_S
        )
    except FileNotFoundError:
        pytest.skip("there is no git: older releases cannot be taken from the history")
    if done.returncode and otherwise is not None:
        pytest.skip(f"{otherwise}: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
