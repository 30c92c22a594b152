"""`quorate image show`, as a user calls it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.logs.image import app
from quorate.snapshots.errors import ImageNotAvailable
from tests.secret_records import SECRETS, write_secret_records


def show(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["show", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_image_show_records_prints_kafkas_own_image(kafka_data: Path) -> None:
    moment = kafka_data / "dynamic-small/m1"
    with gzip.open(moment / "image.jsonl.gz", "rt", encoding="utf-8") as lines:
        expected = sorted(line.strip() for line in lines)

    assert sorted(show("--from", moment / "log", "--records", "--show-secrets").splitlines()) == expected


def test_image_show_json_is_one_document_with_the_whole_state(kafka_data: Path) -> None:
    document = json.loads(show("--from", kafka_data / "static/m1/log", "--json"))

    assert document["provenance"]["last_contained_offset"] == 193
    assert document["features"]["metadata.version"] == 21
    assert len(document["topics"]) == 7
    assert f"Digest: {document['digest']}" in show("--from", kafka_data / "static/m1/log")


@pytest.mark.parametrize("form", ["--json", "--records"])
def test_image_show_hides_keys_and_configs_that_may_be_secrets(tmp_path: Path, form: str) -> None:
    write_secret_records(tmp_path)

    hidden = show("--from", tmp_path, form)
    shown = show("--from", tmp_path, form, "--show-secrets")

    in_it = SECRETS if form == "--records" else SECRETS[:2]  # the state as JSON never holds a credential
    assert all(secret in shown and secret not in hidden for secret in in_it)
    assert not any(secret in hidden for secret in SECRETS)
    assert "1000" in hidden


def test_image_show_tells_people_what_is_wrong(kafka_data: Path) -> None:
    text = show("--from", kafka_data / "static/m2/log")

    for expected in (
        "State at offset 10996",
        "76 topics, 3,061 partitions",
        "782 without a leader",
        "fenced",
        "6 ACLs",
    ):
        assert expected in text


def test_image_show_at_offset_shows_the_state_before_it(kafka_data: Path) -> None:
    text = show("--from", kafka_data / "static/m2/log", "--at", "194")

    assert "State at offset 194" in text
    assert "7 topics, 31 partitions" in text


def test_image_show_of_offset_out_of_reach_is_refused(kafka_data: Path) -> None:
    with pytest.raises(ImageNotAvailable):
        show("--from", kafka_data / "static/m4/log", "--at", "100")


def test_image_show_wants_one_form_at_most(kafka_data: Path) -> None:
    result = CliRunner().invoke(app, ["show", "--from", str(kafka_data), "--json", "--records"])

    assert result.exit_code == 2
