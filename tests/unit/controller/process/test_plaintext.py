"""What is served in plaintext to other machines is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quorate.controller.process.server import warn_of_plaintext
from quorate.controller.process.settings import ControllerSettings


@pytest.mark.parametrize(("bind", "count"), [("0.0.0.0:18001", 1), ("192.0.2.7:18001", 1), ("127.0.0.1:18001", 0)])
def test_plaintext_off_loopback_is_warned_of(tmp_path: Path, bind: str, count: int) -> None:
    values = {
        "node_id": 1,
        "directory": tmp_path,
        "shared_secret_file": tmp_path / "secret",
        "voters": [{"id": 1, "quorum": "127.0.0.1:19001", "http": "127.0.0.1:18000"}],
        "http": {"bind": bind},
        "quorum": {"kraft_version": 0},
    }
    with capture_logs() as said:
        warn_of_plaintext(ControllerSettings.model_validate(values))
    assert [(line["event"], line["log_level"], line["http"]) for line in said] == [
        ("http.plaintext", "warning", bind)
    ] * count
