"""The captured files are what their lists say, and a clone stays small."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

SIZE_MAX = 15 * 1024 * 1024


@pytest.mark.parametrize("capture", ["static", "dynamic-small"])
def test_captured_logs_and_checkpoints_equal_their_list(kafka_data: Path, capture: str) -> None:
    """Every file is listed with the bytes it has, and no other is there."""
    listed = json.loads((kafka_data / capture / "files.json").read_text(encoding="utf-8"))
    found = {
        str(path.relative_to(kafka_data / capture)): path.read_bytes()
        for path in (kafka_data / capture).rglob("*")
        if path.suffix in (".log", ".checkpoint")
    }

    assert {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in found.items()} == {
        name: (facts["size"], facts["sha256"]) for name, facts in listed.items()
    }


def test_test_data_stay_below_their_size_limit() -> None:
    """Data come with every clone."""
    files = [path for path in (ROOT / "tests" / "data").rglob("*") if path.is_file()]

    assert sum(path.stat().st_size for path in files) <= SIZE_MAX
