"""The lock fits the project file and names nothing of the machine it was made on; the launchers can be started."""

import os
import re
import tomllib
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT

LAUNCHERS = (
    "scripts/bench",
    "scripts/bench-pipeline",
    "scripts/check-advisories",
    "scripts/conformance",
    "scripts/fuzz",
    "scripts/fuzz-peer",
    "scripts/generate-history",
    "scripts/hostile",
    "scripts/netsim",
    "scripts/quorate",
    "scripts/replay-digests",
    "scripts/screenshots",
    "scripts/simulate",
    "scripts/spark-cluster",
    "scripts/test",
    "scripts/up",
    ".ci/run",
)


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def locked(name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [package for package in toml("uv.lock")["package"] if package["name"] == name]
    assert len(found) == 1
    return found[0]


def requirement(text: str) -> tuple[str, str]:
    """Split `name[extra]>=1,<2` into name and bounds in any order, as the lock and the project file differ in it."""
    matched = re.fullmatch(r"([A-Za-z0-9._-]+(?:\[[a-z,]+\])?)\s*(.*)", text)
    assert matched is not None
    bounds = sorted(bound.strip() for bound in matched[2].split(",") if bound.strip())
    return matched[1].lower().replace("_", "-"), ",".join(bounds)


def listed(entries: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {requirement(entry["name"] + extras(entry) + entry.get("specifier", "")) for entry in entries}


def extras(entry: dict[str, Any]) -> str:
    return f"[{','.join(entry['extras'])}]" if "extras" in entry else ""


def test_lock_was_made_from_the_requirements_of_the_project_file() -> None:
    """`uv lock` after every change of a requirement: the launchers install the lock and look at nothing else."""
    project, metadata = toml("pyproject.toml"), locked("quorate")["metadata"]
    optional = [text for texts in project["project"]["optional-dependencies"].values() for text in texts]

    assert listed(metadata["requires-dist"]) == {
        requirement(text) for text in project["project"]["dependencies"] + optional
    }
    assert {name: listed(entries) for name, entries in metadata["requires-dev"].items()} == {
        name: {requirement(text) for text in texts} for name, texts in project["dependency-groups"].items()
    }
    assert toml("uv.lock")["requires-python"] == project["project"]["requires-python"]


def test_lock_names_only_the_public_package_index() -> None:
    """An address or a path of one machine would make the lock useless on all others."""
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")

    assert set(re.findall(r"\w+://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    assert [package["name"] for package in toml("uv.lock")["package"] if "registry" not in package["source"]] == [
        "quorate"
    ]


def test_consensus_library_is_pinned_exactly() -> None:
    """quorum/ overrides private methods of this one version and refuses every other."""
    assert "pysyncobj==0.3.17" in toml("pyproject.toml")["project"]["dependencies"]
    assert locked("pysyncobj")["version"] == "0.3.17"


def test_web_framework_is_none_that_reads_a_request_as_two() -> None:
    """Its versions before 3.13.3 took some forms of a request for another one, and inflated without a bound."""
    (bounds,) = [requirement(text)[1] for text in toml("pyproject.toml")["project"]["dependencies"]
                 if requirement(text)[0] == "aiohttp"]  # fmt: skip
    assert bounds.startswith(">=")
    least = tuple(map(int, bounds.removeprefix(">=").split(".")))
    assert (3, 13, 3) <= least <= tuple(map(int, locked("aiohttp")["version"].split(".")))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launcher_is_executable(launcher: str) -> None:
    """A clone keeps the executable bit, an unpacked copy of a copy may not."""
    assert os.access(ROOT / launcher, os.X_OK)


@pytest.mark.parametrize("moment", ["static/m2", "dynamic-small/m1"])
def test_captures_in_the_package_are_links_to_all_files_of_the_captures(moment: str) -> None:
    """Link by link: whoever builds a package takes what a file's link points to, and refuses a directory's."""
    source, packed = ROOT / "tests" / "data" / "kafka" / moment / "log", ROOT / "scripts" / "captures"
    links = packed / moment.replace("/", "-")
    files = {path.relative_to(source): path for path in source.rglob("*") if path.is_file()}
    assert files
    assert {path.relative_to(links): path.resolve() for path in links.rglob("*") if path.is_symlink()} == files
    assert [path for path in links.rglob("*") if path.is_file() and not path.is_symlink()] == []


def test_wheel_leaves_out_what_only_developers_run() -> None:
    """And the launchers, which need a checkout: what is installed is started as `quorate`."""
    settings = toml("pyproject.toml")["tool"]
    left_out = set(settings["hatch"]["build"]["targets"]["wheel"]["exclude"])
    (contract,) = (one for one in settings["importlinter"]["contracts"] if "only developers run" in one["name"])

    rooms = {"/src/" + module.replace(".", "/") for module in contract["forbidden_modules"]}
    launchers = {f"/src/quorate/{launcher}" for launcher in LAUNCHERS if launcher.startswith("scripts/")}
    assert rooms | launchers <= left_out
