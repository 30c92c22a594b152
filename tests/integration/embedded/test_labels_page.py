"""The programs of docs/labels.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from quorate.broker.publisher import Manifest
from quorate.metadata_log.records.records import ConfigRecord, VersionedRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.image.labels import Label, config_of
from quorate.snapshots.replay.replay import replay

PAGE = Path(__file__).parents[3] / "docs" / "labels.md"
AGREEING, FOLLOWING = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
WAIT_S = 60


def run(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    program = directory / "program.py"
    program.write_text(text, encoding="utf-8")
    command = [sys.executable, "-P", "-W", "error", str(program)]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=WAIT_S)


def test_program_that_compares_and_sets_runs_to_its_end(tmp_path: Path) -> None:
    done = run(tmp_path, AGREEING)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("right", "wrong"), [("conditions=[lease]", "conditions=[routing]"), ('"1", "3"', '"2", "3"')])
def test_damaged_program_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    assert right in AGREEING
    assert run(tmp_path, AGREEING.replace(right, wrong)).returncode == 1


def test_publisher_of_the_page_follows_labels() -> None:
    page = ModuleType("page")
    exec(compile(FOLLOWING, str(PAGE), "exec"), page.__dict__)
    publisher = page.SchemaVersions()
    image = EMPTY_IMAGE

    def publish(*changes: tuple[str, str, str | None]) -> None:
        nonlocal image
        records = [VersionedRecord(ConfigRecord(*config_of(Label(*place)), value), 0) for *place, value in changes]
        old, image = image, replay(image, records)
        publisher.on_metadata_update(MetadataDelta(old, image), image, Manifest(Provenance(), 1, 1, 0.0, False))

    publish(("topic:a", "acme/schema", "1"), ("topic:b", "acme/schema", "1"), ("broker:1", "acme/schema", "1"))
    assert publisher.versions == {"a": "1", "b": "1"}
    publish(("topic:a", "acme/schema", "2"), ("topic:b", "acme/schema", None), ("topic:c", "acme/other", "1"))
    assert publisher.versions == {"a": "2"}
