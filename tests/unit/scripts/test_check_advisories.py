"""`scripts/check-advisories` on a lock and advisories of the test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quorate.scripts.check_advisories import BadAdvisories, app, locked_packages

LOCK = """
version = 1
[[package]]
name = "aiohttp"
version = "3.13.2"
source = { registry = "https://registry.example/simple" }
[[package]]
name = "typing-extensions"
version = "4.15.0"
source = { registry = "https://registry.example/simple" }
[[package]]
name = "quorate"
source = { editable = "." }
"""
ROOT = Path(__file__).parents[3]


def advisory(*events: tuple[str, str], name: str = "aiohttp", versions: tuple[str, ...] = ()) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": [{kind: text} for kind, text in events]}] if events else []
    package = {"ecosystem": "PyPI", "name": name}
    return {"id": "X-1", "summary": "smuggling", "affected": [
        {"package": package, "ranges": ranges, "versions": list(versions)}
    ]}  # fmt: skip


def check(tmp_path: Path, document: object) -> tuple[int, str]:
    (tmp_path / "uv.lock").write_text(LOCK)
    (tmp_path / "advisories.json").write_text(document if isinstance(document, str) else json.dumps(document))
    arguments = ["--file", str(tmp_path / "advisories.json"), "--lock", str(tmp_path / "uv.lock")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize(
    ("told", "is_found"),
    [
        (advisory(("introduced", "0"), ("fixed", "3.13.3")), True),
        (advisory(("introduced", "0"), ("fixed", "3.13.2")), False),
        (advisory(("introduced", "3.13.2"), ("last_affected", "3.13.2")), True),
        (advisory(("introduced", "0"), ("last_affected", "3.13.1")), False),
        (advisory(("introduced", "3.14"), ("fixed", "4")), False),
        (advisory(("introduced", "0"), ("fixed", "3"), ("introduced", "3.13"), ("fixed", "3.14")), True),
        (advisory(("fixed", "3.14"), ("introduced", "3.13.0rc1")), True),
        (advisory(versions=("3.13.1", "3.13.2")), True),
        (advisory(versions=("3.13.1", "2004d")), False),
        (advisory(("introduced", "0"), name="AIOHTTP"), True),
        (advisory(("introduced", "0"), name="typing_extensions"), True),
        (advisory(("introduced", "0"), name="quorate"), False),
        (advisory(("introduced", "0")) | {"withdrawn": "2026-01-01T00:00:00Z"}, False),
    ],
)
def test_package_is_named_where_the_advisory_is_about_its_version(
    tmp_path: Path, told: dict[str, Any], is_found: bool
) -> None:
    for document in (told, [told, told], {"vulns": [told]}):
        code, out = check(tmp_path, document)
        assert (code, out.count("X-1: smuggling")) == ((1, 1) if is_found else (0, 0))
        assert out.endswith(f"2 packages, {int(is_found)} findings\n")


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("{", "is no JSON"),
        ("[1]", "holds no advisories"),
        ("{}", "holds no advisories"),
        (advisory(("introduced", "one")), "X-1 is not understood"),
        ({"id": "X-1", "affected": [{}]}, "X-1 is not understood"),
    ],
)
def test_what_is_not_understood_is_not_passed_over(tmp_path: Path, document: object, why: str) -> None:
    with pytest.raises(BadAdvisories, match=why):
        check(tmp_path, document)


def test_lock_of_the_project_is_read() -> None:
    assert {"aiohttp", "numpy", "uv"} <= locked_packages(ROOT / "uv.lock").keys()
