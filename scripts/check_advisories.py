"""`scripts/check-advisories`: the packages of the lock against known advisories, without a network."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run

_LOCK: Final = Path(__file__).resolve().parent.parent / "uv.lock"
_FILE_BYTES_MAX: Final = 512 * 1024 * 1024
_ECOSYSTEM: Final = "PyPI"

app = typer.Typer(
    help="Check the lock's packages against known advisories.", add_completion=False, pretty_exceptions_enable=False
)


class BadAdvisories(QuorateError):
    """A file that holds no advisories, or a lock that is none."""


@app.command()
def check(
    file: Annotated[
        Path,
        typer.Option(
            "--file", metavar="F", help='Advisories as OSV JSON: one, a list, or {"vulns": [...]}.', show_default=False
        ),
    ],
    lock: Annotated[Path, typer.Option("--lock", metavar="FILE", help="The lock.")] = _LOCK,
) -> None:
    """Name every package of the lock that a known advisory is about. Exit code 1: there is one.

    Asks nobody: the file is what https://osv.dev exports, or its API answers, for PyPI. Advisories that were withdrawn
    do not count.

    Example: scripts/check-advisories --file advisories.json
    """
    packages = locked_packages(lock)
    found = sorted(set(findings(packages, read_advisories(file))))
    for name, version, advisory, summary in found:
        sys.stdout.write(f"{name} {version}: {advisory}: {summary}\n")
    sys.stdout.write(f"{len(packages)} packages, {len(found)} findings\n")
    if found:
        raise typer.Exit(exit_codes.REFUSED)


def locked_packages(lock: Path) -> dict[str, Version]:
    """The packages from a registry, by canonical name.

    Raises:
        BadAdvisories: it is no lock.
    """
    try:
        packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
        from_registry = [one for one in packages if "registry" in one["source"]]
        return {canonicalize_name(one["name"]): Version(one["version"]) for one in from_registry}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadAdvisories(f"{lock} is no uv.lock: {error}") from error


def read_advisories(file: Path) -> list[dict[str, Any]]:
    """The advisories of a file.

    Raises:
        BadAdvisories: it holds none, or is too large.
    """
    try:
        if file.stat().st_size > _FILE_BYTES_MAX:
            raise BadAdvisories(f"{file} has more than {_FILE_BYTES_MAX} bytes")
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadAdvisories(f"{file} is no JSON: {error}") from error
    if isinstance(document, dict):
        document = document.get("vulns", [document])
    if not isinstance(document, list) or not all(isinstance(one, dict) and "id" in one for one in document):
        raise BadAdvisories(f'{file} holds no advisories: an OSV document has an id, a list or "vulns" has documents')
    return document


def findings(packages: dict[str, Version], advisories: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Package, version, advisory and summary.

    Raises:
        BadAdvisories: an advisory about one of the packages that cannot be understood: it is not passed over.
    """
    for advisory in advisories:
        if advisory.get("withdrawn"):
            continue
        try:
            for affected in advisory.get("affected", ()):
                package = affected["package"]
                name = canonicalize_name(package["name"])
                version = packages.get(name)
                if package["ecosystem"] == _ECOSYSTEM and version is not None and _is_affected(affected, version):
                    yield name, str(version), str(advisory["id"]), str(advisory.get("summary", "no summary"))
        except (InvalidVersion, KeyError, TypeError, AttributeError) as error:
            raise BadAdvisories(f"advisory {advisory['id']} is not understood: {error}") from error


def _is_affected(affected: dict[str, Any], version: Version) -> bool:
    """By the rule of the OSV schema: listed, or in a range."""
    listed = affected.get("versions", ())
    if any(_equals(text, version) for text in listed):
        return True
    ranges = [one for one in affected.get("ranges", ()) if one["type"] in ("ECOSYSTEM", "SEMVER")]
    return any(_is_in(one["events"], version) for one in ranges)


def _equals(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except InvalidVersion:
        return False  # an old form, which nothing in a lock has


def _is_in(events: Iterable[dict[str, str]], version: Version) -> bool:
    """Events in the order of their versions; ``0`` is before all."""
    is_in = False
    for event in sorted(events, key=_place):
        ((kind, text),) = event.items()
        if kind == "introduced" and (text == "0" or Version(text) <= version):
            is_in = True
        elif (kind == "fixed" and Version(text) <= version) or (kind == "last_affected" and Version(text) < version):
            is_in = False
    return is_in


def _place(event: dict[str, str]) -> tuple[Version, bool]:
    ((kind, text),) = event.items()
    return Version(text), kind != "introduced"


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/check-advisories")
