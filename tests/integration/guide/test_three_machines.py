"""docs/deployment.md, followed to the letter on machines that are namespaces: it ends HEALTHY, also out of a backup."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT
from tests.integration.guide.machines import NOT_HERE
from tests.integration.guide.page import steps

PAGE = ROOT / "docs" / "deployment.md"
END_S = 570


def said_of(done: list[dict[str, Any]], command: str) -> list[str]:
    return [one["said"] for one in done if command in one["command"]]


@pytest.mark.timeout(600)
def test_guide_for_three_machines_ends_healthy_and_comes_back_from_its_backup(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.integration.guide.machines", str(PAGE), str(tmp_path / "machines")],
        cwd=ROOT,
        # `scripts/test` sets it; these programs are found in the directory where they are started.
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=END_S,
    )
    if ended.returncode == NOT_HERE:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    done = json.loads(ended.stdout.splitlines()[-1])
    assert [one for one in done if one["code"]] == [], ended.stdout
    assert len(done) == len(steps(PAGE, "Three machines", ("Installation",)))
    seen = said_of(done, "quorate status")
    assert [text.split()[0] for text in seen] == ["HEALTHY", "HEALTHY"]
    assert not [text for text in seen if "does not answer" in text], "a certificate, or an address, is wrong"
    (verified,) = said_of(done, "snapshot verify")
    digests = [re.findall(r"digest ([0-9a-f]{64})", text) for text in (verified, *said_of(done, "snapshot restore"))]
    assert digests == digests[:1] * 4
    (described,) = said_of(done, "topics describe orders")
    assert "partitions 6  replication factor 3" in described
